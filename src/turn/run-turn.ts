import type { TurnResult } from "../protocol/turn-result.ts";
import type { TurnRequest, TurnRuntime } from "./contract.ts";
import { describeError } from "./describe-error.ts";
import { openTurn, type Turn } from "./open-turn.ts";
import { buildBestEffortTerminalOutcome } from "./outcome/build-best-effort-terminal-outcome.ts";
import { keepDataset } from "./outcome/keep-dataset.ts";
import { toTurnResult } from "./outcome/to-turn-result.ts";
import { planTurn } from "./plan/plan-turn.ts";
import { recordLostCalls } from "./steps/record-missed-calls.ts";
import { endByClock, runSteps, type StepsEnd } from "./steps/run-steps.ts";
import { synthesize } from "./synthesis/synthesize.ts";

/**
 * A turn, from the question to its result: plan, steps, what is missing, the data behind it, the answer. It always ends with a result, whatever failed, and
 * nothing of it is left when it does. Rejects only when it could not begin.
 */
export async function runTurn(runtime: TurnRuntime, request: TurnRequest): Promise<TurnResult> {
  await using turn = openTurn(runtime, request);
  begin(turn);
  await planTurn(turn);
  const end = await takeSteps(turn);
  const dataset = await keepDataset(turn, end);
  const outcome = buildBestEffortTerminalOutcome(turn, end);
  const { answer, stopReason, gaps } = await synthesize(turn, outcome);
  const result = toTurnResult(turn, { answer, stopReason, gaps, dataset });
  turn.remember({ turnId: turn.id, question: request.question, answer });
  turn.emit({ type: "turn-end", result });
  return result;
}

function begin({ id, conversation, request, emit }: Turn): void {
  emit({ type: "turn-start", turnId: id, conversationId: conversation.id, question: request.question });
}

/** The sandbox is needed by the steps only, so it is gone before the answer is written. */
async function takeSteps(turn: Turn): Promise<StepsEnd> {
  try {
    return await runSteps(turn);
  } catch (error) {
    return endByClock(turn) ?? { stopReason: "model_error", detail: `The turn failed: ${describeError(error)}` };
  } finally {
    await turn.settle();
    recordLostCalls(turn);
  }
}
