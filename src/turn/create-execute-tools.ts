import { jsonSchema, tool, type Tool } from "ai";
import type { CodeModeAnswer, CodeModeTool } from "../execute/create-code-mode.ts";

/** `execute`, `search`, `get_schema`, `tags` and the tools of the session as AI SDK tools. Calls are checked by ours, so a wrong one gets an envelope. */
export function createExecuteTools(codeMode: readonly CodeModeTool[]): Record<string, Tool<unknown, CodeModeAnswer>> {
  return Object.fromEntries(codeMode.map((one) => [one.name, toTool(one)]));
}

function toTool({ description, inputSchema, run }: CodeModeTool): Tool<unknown, CodeModeAnswer> {
  return tool({
    description,
    inputSchema: jsonSchema(inputSchema as Parameters<typeof jsonSchema>[0]),
    execute: (input: unknown, { abortSignal }) => run(input, { signal: abortSignal }),
    toModelOutput: ({ output }) => ({ type: output.envelope === null ? "text" : "error-text", value: output.json }),
  });
}
