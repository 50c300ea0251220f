import type { Turn } from "../open-turn.ts";
import type { StepEnd } from "./run-step.ts";

/** Calls that never reached a tool: no such tool, a tool that was not to be called now, arguments that are no JSON. They count as calls, and were refused. */
export function recordMissedCalls({ ledger, emit }: Turn, toolCalls: StepEnd["toolCalls"]): void {
  const known = new Set(ledger.calls.map(({ callId }) => callId));
  const step = ledger.steps;
  for (const { callId, tool, input, reason } of toolCalls) {
    if (known.has(callId)) continue;
    const isMissing = reason === null || /unavailable tool|no such tool/i.test(reason);
    const why = reason ?? `${tool} cannot be called in this step.`;
    const failure = isMissing
      ? { kind: "tool_not_found", code: "TOOL_NOT_FOUND", reason: why }
      : { kind: "mcp_input_validation", code: "SCHEMA_VALIDATION_FAILED", reason: why };
    ledger.addCall({ step, callId, tool, input, status: "refused", durationMs: 0, aliases: [], artifacts: [], failure, isEmpty: false });
    emit({ type: "tool-end", step, callId, tool, status: "refused", durationMs: 0, reason: why });
  }
}
