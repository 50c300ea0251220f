import { jsonSchema, tool, type Tool as AiSdkTool } from "ai";
import type { CodeModeTool } from "../../execute/create-code-mode.ts";
import type { InterpreterTurn } from "../../interpreter/turn.ts";
import type { Tool, ToolCallResult } from "../../tools/tool.ts";
import { codeInterpreterTool, pythonCodeEditTool, renderChartTool, type CellResult } from "./interpreter-tools.ts";

export interface CodeInterpreterTools {
  code_interpreter: AiSdkTool<unknown, CellResult>;
  python_code_edit: AiSdkTool<unknown, CellResult>;
  render_chart: AiSdkTool<unknown, ToolCallResult>;
}

/** The interpreter as AI SDK tools, and what a model must know to use them. Await running tools before `disposeTurnSandbox(turn)`. */
export async function createCodeInterpreterTools(
  runtime: { librarianPrompt(): Promise<string> },
  turn: InterpreterTurn,
): Promise<{ readonly tools: CodeInterpreterTools; readonly instructions: string }> {
  const tools = {
    code_interpreter: toAiSdkTool(codeInterpreterTool, (signal) => ({ turn, signal })),
    python_code_edit: toAiSdkTool(pythonCodeEditTool, (signal) => ({ turn, signal })),
    render_chart: toAiSdkTool(renderChartTool, (signal) => ({ turn, signal })),
  };
  return { tools, instructions: await runtime.librarianPrompt() };
}

/** `execute`, `search`, `get_schema`, `tags` and the tools of the session as AI SDK tools. */
export function createExecuteTools(codeMode: readonly CodeModeTool[]): Record<string, AiSdkTool<unknown, ToolCallResult>> {
  return Object.fromEntries(codeMode.map((one) => [one.name, toAiSdkTool(one, (signal) => ({ signal }))]));
}

/** The published schema is checked by the tool itself: a call that breaks it gets an envelope that it can be mended by, not the SDK's sentence. */
function toAiSdkTool<Context, Result extends ToolCallResult>(
  { description, inputSchema, run }: Tool<Context, Result>,
  contextOf: (signal: AbortSignal | undefined) => Context,
): AiSdkTool<unknown, Result> {
  return tool({
    description,
    inputSchema: jsonSchema(inputSchema as Parameters<typeof jsonSchema>[0]),
    execute: (input: unknown, { abortSignal }: { abortSignal?: AbortSignal | undefined }) => run(input, contextOf(abortSignal)),
    toModelOutput: ({ output }: { output: Result }) => ({ type: output.error === null ? "text" : "error-text", value: output.text }),
  } as never) as AiSdkTool<unknown, Result>;
}
