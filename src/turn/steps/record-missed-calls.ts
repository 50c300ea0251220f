import type { Turn } from "../open-turn.ts";
import type { StepEnd } from "./run-step.ts";

/** Calls that never reached a tool: no such tool, a tool that was not to be called now, arguments that are no JSON. They count as calls, and were refused. */
export function recordMissedCalls({ ledger, emit }: Turn, toolCalls: StepEnd["toolCalls"]): void {
  const step = ledger.steps;
  for (const { callId, tool, input, reason } of toolCalls) {
    if (ledger.begun.has(callId)) continue;
    const isMissing = reason === null || /unavailable tool|no such tool/i.test(reason);
    const why = reason ?? `${tool} cannot be called in this step.`;
    const failure = isMissing
      ? { kind: "tool_not_found", code: "TOOL_NOT_FOUND", reason: why }
      : { kind: "mcp_input_validation", code: "SCHEMA_VALIDATION_FAILED", reason: why };
    ledger.addCall({ step, callId, tool, input, status: "refused", durationMs: 0, aliases: [], artifacts: [], failure, isEmpty: false });
    emit({ type: "tool-start", step, callId, tool });
    emit({ type: "tool-end", step, callId, tool, status: "refused", durationMs: 0, reason: why });
  }
}

/** Calls that were not over when they could be waited for no longer. */
export function recordLostCalls({ ledger, emit }: Pick<Turn, "ledger" | "emit">): void {
  const over = new Set(ledger.calls.map(({ callId }) => callId));
  for (const call of ledger.begun.values()) {
    if (over.has(call.callId)) continue;
    const { step, callId, tool, server } = call;
    const failure = { kind: null, code: "ABORTED", reason: "it was still running when the turn ended" };
    ledger.addCall({ ...call, status: "aborted", durationMs: 0, aliases: [], artifacts: [], failure, isEmpty: false });
    emit({ type: "tool-end", step, callId, tool, server, status: "aborted", durationMs: 0, reason: failure.reason });
  }
}
