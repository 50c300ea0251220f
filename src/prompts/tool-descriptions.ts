/** What a model reads of each tool, whichever way in it came by. The rules that hold for all of them are in `librarianPrompt`. */
export const toolDescriptions = {
  code_interpreter:
    "Derive metrics, tables and figures with sandboxed Python from tool outputs that were already fetched. Tool outputs are globals under their alias, whole. No network. End with set_result(value); save_figure(alt) hands over a figure.",
  python_code_edit:
    "Mend the code of the last code_interpreter call by exact replacements and run it again from the state before that cell.",
  render_chart:
    "Draw a chart straight from one tool output or result, by alias, when its rows already have the shape. Reshape with code_interpreter otherwise.",
} as const;

/** The tools that only the model of a turn has. */
export const turnToolDescriptions = {
  final_response: "The last call of every turn: the answer.",
  finalAnswer: "The answer to the user, in Markdown, with its numbers and everything that is missing from it.",
  call_mcp_skill: (toolCount: number): string =>
    `Call one of ${toolCount} backend tools by name. search finds tools by what they do; get_schema shows how to call them.`,
  skillTool: "The name of the tool, as search and get_schema list it.",
  skillArguments: "The arguments of the tool, as its schema describes them.",
} as const;
