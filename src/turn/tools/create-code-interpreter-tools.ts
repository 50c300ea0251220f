import { jsonSchema, tool, type Tool as AiSdkTool } from "ai";
import type { CodeModeTool } from "../../execute/create-code-mode.ts";
import type { InterpreterTurn } from "../../interpreter/interpreter-turn.ts";
import type { Tool, ToolCallResult } from "../../tools/tool.ts";
import type { ToolResult } from "../../interpreter/tool-result.ts";
import { codeInterpreterTool, pythonCodeEditTool, renderChartTool, type ChartToolResult } from "./interpreter-tools.ts";

export interface CodeInterpreterTools {
  code_interpreter: AiSdkTool<unknown, ToolResult>;
  python_code_edit: AiSdkTool<unknown, ToolResult>;
  render_chart: AiSdkTool<unknown, ChartToolResult>;
}

/** Returns the interpreter as AI SDK tools, and the instructions for using them. Await running tools before `disposeTurnSandbox(turn)`. */
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

/** Returns `execute`, `search`, `get_schema`, `tags` and the identity tools as AI SDK tools. */
export function createExecuteTools(codeMode: readonly CodeModeTool[]): Record<string, AiSdkTool<unknown, ToolCallResult>> {
  return Object.fromEntries(codeMode.map((codeModeTool) => [codeModeTool.name, toAiSdkTool(codeModeTool, (signal) => ({ signal }))]));
}

/** The tool validates its input itself, so that an invalid call gets a tool error with hints instead of the SDK's message. */
function toAiSdkTool<Context, Result extends ToolCallResult>(
  { description, inputSchema, run }: Tool<Context, Result>,
  createContext: (signal: AbortSignal | undefined) => Context,
): AiSdkTool<unknown, Result> {
  return tool({
    description,
    inputSchema: jsonSchema(inputSchema as Parameters<typeof jsonSchema>[0]),
    execute: (input: unknown, { abortSignal }: { abortSignal?: AbortSignal | undefined }) => run(input, createContext(abortSignal)),
    toModelOutput: ({ output }: { output: Result }) => ({ type: output.error === null ? "text" : "error-text", value: output.text }),
  } as never) as AiSdkTool<unknown, Result>;
}
