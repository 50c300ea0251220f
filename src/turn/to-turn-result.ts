import { nameModel } from "../models/name-model.ts";
import type { Confidence, DatasetReference, Gap, Grounding, StopReason, TraceStep, TurnResult } from "../protocol/turn-result.ts";
import type { TurnParts } from "./turn-request.ts";
import type { CallRecord, Ledger } from "./ledger.ts";
import type { TerminalOutcome } from "./answer/build-best-effort-terminal-outcome.ts";

export function toTurnResult(
  { turnId, request, conversation, ledger, clock }: Pick<TurnParts, "turnId" | "request" | "conversation" | "ledger" | "clock">,
  { answer, stopReason, gaps, failure, dataset }: TerminalOutcome & { readonly dataset: DatasetReference | null },
): TurnResult {
  const grounding = toGrounding(ledger.calls);
  return {
    schemaVersion: 1,
    turnId,
    conversationId: conversation.id,
    answer,
    artifacts: [...ledger.artifacts],
    gaps: [...gaps],
    outcome: { stopReason, ...(failure && { error: failure }) },
    model: nameModel(request.model),
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

/** Low for a bounded or failed turn or with a major gap; medium with a minor gap or a failed call; otherwise high. */
function toConfidence(stopReason: StopReason, gaps: readonly Gap[], { toolCallFailureCount: failures }: Grounding): Confidence {
  const major = gaps.find(({ severity }) => severity === "major");
  const minor = gaps.find(({ severity }) => severity === "minor");
  if (stopReason !== "complete_answer") return { level: "low", reason: major?.detail ?? `The turn stopped with ${stopReason}.` };
  if (major !== undefined) return { level: "low", reason: major.detail };
  if (minor !== undefined) return { level: "medium", reason: minor.detail };
  if (failures > 0) return { level: "medium", reason: `${failures} tool ${failures === 1 ? "call" : "calls"} failed.` };
  return { level: "high", reason: "The answer is complete, and no tool call failed." };
}

const LISTED_FAILURES = 50;

/** Counts the calls by how they ended. Refused and aborted calls count as failures. */
function toGrounding(calls: readonly CallRecord[]): Grounding {
  const counted = calls.filter(({ tool }) => tool !== "final_response");
  const failed = counted.filter(({ status }) => status !== "ok");
  return {
    toolCallAttemptCount: counted.length,
    toolCallSuccessCount: counted.length - failed.length,
    toolCallFailureCount: failed.length,
    failures: failed.slice(0, LISTED_FAILURES).map(({ tool, failure }) => ({ tool, reason: failure?.reason ?? "no reason given" })),
  };
}

/** Calls in the order of their requests. The calls of a script follow its `execute` call. */
function toTrace({ calls, requested, steps }: Pick<Ledger, "calls" | "requested" | "steps">): TraceStep[] {
  const order = new Map([...requested.keys()].map((callId, index) => [callId, index]));
  const position = (call: CallRecord): number => order.get(call.within ?? call.callId) ?? order.size;
  const sorted = [...calls].sort((a, b) => position(a) - position(b) || (order.get(a.callId) ?? 0) - (order.get(b.callId) ?? 0));
  return Array.from({ length: steps }, (_, index) => ({
    step: index + 1,
    calls: sorted
      .filter(({ step }) => step === index + 1)
      .map(({ tool, within, intent, aliases: [alias], durationMs, status, artifacts }) => {
        const hashes = artifacts.map(({ contentHash }) => contentHash);
        return { tool, within: within && "execute", intent, alias, durationMs, status, artifacts: hashes };
      }),
  }));
}
