import type { CallFailure } from "../ledger.ts";
import type { Turn } from "../open-turn.ts";
import type { StepEnd } from "./run-step.ts";

/** Calls that never reached a tool: no such tool, a tool that was not to be called now, arguments that are no JSON, or a model that was gone before. */
export function recordMissedCalls({ ledger, emit }: Turn, { toolCalls, error }: Pick<StepEnd, "toolCalls" | "error">): void {
  const step = ledger.steps;
  for (const { callId, tool, input, reason } of toolCalls) {
    if (ledger.begun.has(callId)) continue;
    const failure = whyMissed(tool, reason, error !== null);
    const status = failure.code === "ABORTED" ? "aborted" : "refused";
    ledger.addCall({ step, callId, tool, input, status, durationMs: 0, aliases: [], artifacts: [], failure, isEmpty: false });
    emit({ type: "tool-start", step, callId, tool });
    emit({ type: "tool-end", step, callId, tool, status, durationMs: 0, reason: failure.reason });
  }
}

function whyMissed(tool: string, reason: string | null, isBroken: boolean): CallFailure {
  if (reason === null && isBroken) return { kind: null, code: "ABORTED", reason: "the model's answer broke off before it was called" };
  if (reason === null || /unavailable tool|no such tool/i.test(reason))
    return { kind: "tool_not_found", code: "TOOL_NOT_FOUND", reason: reason ?? `${tool} cannot be called in this step.` };
  return { kind: "mcp_input_validation", code: "SCHEMA_VALIDATION_FAILED", reason };
}

/** Calls that were not over when they could be waited for no longer. */
export function recordLostCalls({ ledger, emit }: Pick<Turn, "ledger" | "emit">): void {
  for (const call of ledger.begun.values()) {
    const { step, callId, tool, server, within } = call;
    const failure = { kind: null, code: "ABORTED", reason: "it was still running when the turn ended" };
    const end = { status: "aborted", durationMs: 0 } as const;
    if (!ledger.addCall({ ...call, ...end, aliases: [], artifacts: [], failure, isEmpty: false })) continue;
    emit({ type: "tool-end", step, callId, tool, server, ...end, reason: failure.reason, within });
  }
}
