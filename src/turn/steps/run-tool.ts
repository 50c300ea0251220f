import { createToolError, type ToolError } from "../../errors/tool-error.ts";
import type { Observations } from "./observations.ts";
import type { TurnTools } from "../tools/turn-tools.ts";
import { leftRunning, toAborted, toFailedCall, type CallResult, type TurnCalls } from "./turn-calls.ts";
import type { AskedCall } from "./ask-model.ts";

export interface RunToolOptions {
  readonly tools: Pick<TurnTools, "find" | "whyMissing">;
  readonly calls: TurnCalls;
  readonly observations: Observations;
  /** How long a tool may take to end once the steps are over. */
  readonly settleMs: number;
  readonly signal: AbortSignal;
}

/** Runs one call of the model and records its answer. Never rejects: a call that cannot be run, or fails, has an answer that says so. */
export async function runTool(asked: AskedCall, { tools, calls, observations, settleMs, signal }: RunToolOptions): Promise<void> {
  const { callId, problem } = asked;
  const { run, ...target } = tools.find(asked);
  const call = calls.begin({ ...target, callId, ...(problem?.kind === "malformed" && { input: undefined }) });
  const result = await answer();
  call.end(result);
  observations.add(callId, result);

  async function answer(): Promise<CallResult> {
    if (problem?.kind === "broken_off") return { ...toAborted(problem.reason), text: "The call was not made.", durationMs: 0 };
    if (problem?.kind === "malformed") return { ...toFailedCall("refused", malformed(asked.tool, problem.reason)), durationMs: 0 };
    if (problem !== null || run === null)
      return { ...toFailedCall("refused", tools.whyMissing(target.tool, problem?.reason)), durationMs: 0 };
    const refusal = call.admit();
    if (refusal !== null) return toFailedCall("refused", refusal);
    try {
      return (await orLost(run(call), { signal, settleMs })) ?? { ...leftRunning, text: "The turn was ended." };
    } catch (error) {
      if (signal.aborted) return { ...toAborted("the turn was ended"), text: "The turn was ended." };
      const summary = error instanceof Error ? error.message : String(error);
      return toFailedCall("error", createToolError({ code: "INTERNAL_ERROR", tool: target.tool, summary }));
    }
  }
}

/** Null when the work goes on for longer than `settleMs` after the abort. */
async function orLost<Value>(work: Promise<Value>, { signal, settleMs }: { signal: AbortSignal; settleMs: number }): Promise<Value | null> {
  const { promise: lost, resolve } = Promise.withResolvers<null>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => void (timer = setTimeout(() => resolve(null), settleMs));
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  work.catch(() => {}); // it may fail after it was given up
  try {
    return await Promise.race([work, lost]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    clearTimeout(timer);
  }
}

function malformed(tool: string, reason: string): ToolError {
  return createToolError({
    code: "SCHEMA_VALIDATION_FAILED",
    tool,
    summary: "The call was not made: its arguments are not valid JSON.",
    details: [{ path: "", issue: reason, received_type: "string" }],
  });
}
