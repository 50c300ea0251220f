import type { CodeModeTool } from "../../execute/create-code-mode.ts";
import type { ToolList } from "../../tools/create-tool-catalog.ts";
import type { Turn } from "../open-turn.ts";
import { answered, failedBy, refused, runCall } from "./run-call.ts";
import { watchScript } from "./watch-script.ts";

export interface CodeModeCall {
  readonly callId: string;
  readonly tool: CodeModeTool;
  readonly input: unknown;
  /** What there is to call now. */
  readonly list: ToolList;
}

/** `execute`, and the tools that find what it can call. What a script fetched is kept by its own calls. */
export async function callCodeMode(turn: Turn, { callId, tool, input, list }: CodeModeCall): Promise<string> {
  return await runCall(turn, { callId, tool: tool.name, input }, async () => {
    const watch = watchScript(turn, { callId, list });
    const { status, json, envelope, aliases } = await tool.run(input, { signal: turn.clock.stepsSignal, watch });
    if (envelope === null) return answered(json, { aliases });
    return { ...(status === "refused" ? refused(envelope, json) : failedBy(envelope, json)), aliases };
  });
}
