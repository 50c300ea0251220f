/** Descriptions of the interpreter tools, for turns, AI SDK apps and MCP clients. `librarianPrompt` has the rules for all of them. */
export const toolDescriptions = {
  code_interpreter:
    "Derive metrics, tables and figures with sandboxed Python from tool outputs that were already fetched. The full tool outputs are globals under their aliases. No network. End with set_result(value); save_figure(alt) publishes a figure.",
  python_code_edit:
    "Fix the code of the last code_interpreter call with exact replacements, and run it again from the state before that cell.",
  render_chart:
    "Draw a chart directly from one tool output or result, by alias, when its rows already have the right shape. Otherwise reshape them with code_interpreter.",
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
