/** What a model reads of each tool, whichever way in it came by. The rules that hold for all of them are in `librarianPrompt`. */
export const toolDescriptions = {
  code_interpreter:
    "Derive metrics, tables and figures with sandboxed Python from tool outputs that were already fetched. Tool outputs are globals under their alias, whole. No network. End with set_result(value); save_figure(alt) hands over a figure.",
  python_code_edit:
    "Mend the code of the last code_interpreter call by exact replacements and run it again from the state before that cell.",
  render_chart:
    "Draw a chart straight from one tool output or result, by alias, when its rows already have the shape. Reshape with code_interpreter otherwise.",
} as const;
