import type { Grounding, TraceStep } from "../../protocol/turn-result.ts";
import type { CallRecord } from "../ledger.ts";

const LISTED_FAILURES = 50;

/** What the answer rests on: calls that were tried and what came of them. */
export function toGrounding(calls: readonly CallRecord[]): Grounding {
  const counted = calls.filter(({ tool }) => tool !== "final_response");
  const failed = counted.filter(({ status }) => status !== "ok");
  return {
    toolCallAttemptCount: counted.length,
    toolCallSuccessCount: counted.length - failed.length,
    toolCallFailureCount: failed.length,
    failures: failed.slice(0, LISTED_FAILURES).map(({ tool, failure }) => ({ tool, reason: failure?.reason ?? "it did not say why" })),
  };
}

export function toTrace(calls: readonly CallRecord[], steps: number): TraceStep[] {
  return Array.from({ length: steps }, (_, index) => ({
    step: index + 1,
    calls: calls
      .filter(({ step }) => step === index + 1)
      .map(({ tool, intent, aliases, durationMs, status, artifacts }) => ({
        tool,
        ...(intent === undefined ? {} : { intent }),
        ...(aliases[0] === undefined ? {} : { alias: aliases[0] }),
        durationMs,
        status,
        artifacts: artifacts.map(({ contentHash }) => contentHash),
      })),
  }));
}
