import type { Confidence, DatasetReference, Gap, Grounding, StopReason, TraceStep, TurnResult } from "../protocol/turn-result.ts";
import type { TurnParts } from "./turn-request.ts";
import type { CallRecord, Ledger } from "./ledger.ts";
import type { TerminalOutcome } from "./answer/build-best-effort-terminal-outcome.ts";

export interface TurnEnd extends TerminalOutcome {
  readonly dataset: DatasetReference | null;
}

export function toTurnResult(turn: Pick<TurnParts, "turnId" | "conversation" | "ledger" | "clock">, end: TurnEnd): TurnResult {
  const { turnId, conversation, ledger, clock } = turn;
  const { answer, stopReason, gaps, dataset } = end;
  const grounding = toGrounding(ledger.calls);
  return {
    schemaVersion: 1,
    turnId,
    conversationId: conversation.id,
    answer,
    artifacts: [...ledger.artifacts],
    gaps: [...gaps],
    outcome: { stopReason },
    confidence: toConfidence(stopReason, gaps, grounding),
    grounding,
    dataset,
    usage: {
      steps: ledger.steps,
      inputTokens: ledger.tokens.input,
      outputTokens: ledger.tokens.output,
      wallMs: Math.round(clock.elapsedMs()),
      sandboxMs: Math.round(ledger.sandboxMs),
    },
    trace: toTrace(ledger),
  };
}

/** Low when the stop is bounded, failed, or a major gap is there; medium with a minor gap or a failed tool call; else high. */
function toConfidence(stopReason: StopReason, gaps: readonly Gap[], { toolCallFailureCount: failures }: Grounding): Confidence {
  const major = gaps.find(({ severity }) => severity === "major");
  const minor = gaps.find(({ severity }) => severity === "minor");
  if (stopReason !== "complete_answer") return { level: "low", reason: major?.detail ?? `The turn ended as ${stopReason}.` };
  if (major !== undefined) return { level: "low", reason: major.detail };
  if (minor !== undefined) return { level: "medium", reason: minor.detail };
  if (failures > 0) return { level: "medium", reason: `${failures} tool ${failures === 1 ? "call" : "calls"} failed on the way.` };
  return { level: "high", reason: "The answer is complete, and no tool call failed." };
}

const LISTED_FAILURES = 50;

/** What the answer rests on: calls that were tried and what came of them. */
function toGrounding(calls: readonly CallRecord[]): Grounding {
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
function toTrace({ calls, begun, steps }: Pick<Ledger, "calls" | "begun" | "steps">): TraceStep[] {
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
