import type { Grounding, TraceStep } from "../../protocol/turn-result.ts";
import type { CallRecord, Ledger } from "../ledger.ts";

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

/** Calls in the order in which they began, those of a script behind it. */
export function toTrace({ calls, begun, steps }: Pick<Ledger, "calls" | "begun" | "steps">): TraceStep[] {
  const order = new Map([...begun.keys()].map((callId, at) => [callId, at]));
  const places = (one: CallRecord): number => order.get(one.within ?? one.callId) ?? order.size;
  const sorted = [...calls].sort((a, b) => places(a) - places(b) || (order.get(a.callId) ?? 0) - (order.get(b.callId) ?? 0));
  return Array.from({ length: steps }, (_, index) => ({
    step: index + 1,
    calls: sorted
      .filter(({ step }) => step === index + 1)
      .map(({ tool, within, intent, aliases, durationMs, status, artifacts }) => ({
        tool,
        ...(within === undefined ? {} : { within: "execute" }),
        ...(intent === undefined ? {} : { intent }),
        ...(aliases[0] === undefined ? {} : { alias: aliases[0] }),
        durationMs,
        status,
        artifacts: artifacts.map(({ contentHash }) => contentHash),
      })),
  }));
}
