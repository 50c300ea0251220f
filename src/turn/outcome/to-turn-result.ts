import type { DatasetReference, Gap, StopReason, TurnResult } from "../../protocol/turn-result.ts";
import type { Turn } from "../open-turn.ts";
import { toConfidence } from "./to-confidence.ts";
import { toGrounding, toTrace } from "./to-grounding.ts";

export interface TurnEnd {
  readonly answer: string;
  readonly stopReason: StopReason;
  readonly gaps: readonly Gap[];
  readonly dataset: DatasetReference | null;
}

export function toTurnResult({ id, conversation, ledger, clock }: Turn, { answer, stopReason, gaps, dataset }: TurnEnd): TurnResult {
  const grounding = toGrounding(ledger.calls);
  return {
    schemaVersion: 1,
    turnId: id,
    conversationId: conversation.id,
    answer,
    artifacts: [...ledger.artifacts],
    gaps: [...gaps],
    outcome: { stopReason },
    confidence: toConfidence({ stopReason, gaps, grounding }),
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
