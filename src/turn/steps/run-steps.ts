import type { ModelMessage } from "ai";
import type { StopReason } from "../../protocol/turn-result.ts";
import { toFirstMessages } from "../first-messages.ts";
import type { Turn } from "../open-turn.ts";
import { stepsOf } from "../plan/plan-turn.ts";
import { compactContext } from "./compact-context.ts";
import { compactMessages } from "./compact-messages.ts";
import { chooseForced } from "./choose-forced.ts";
import { missedCapability } from "./missed-capability.ts";
import { overBudget } from "./over-budget.ts";
import { recordMissedCalls } from "./record-missed-calls.ts";
import { runStep } from "./run-step.ts";
import { openStepTools } from "./step-tools.ts";
import { toStepMessages } from "./step-messages.ts";

/** What ended the steps. `detail` is a sentence for the person who asked; null for a complete answer. */
export interface StepsEnd {
  readonly stopReason: StopReason;
  readonly detail: string | null;
}

const EARLIER_EXCHANGES = 10;

/** Step after step until the model is done or must be stopped. */
export async function runSteps(turn: Turn): Promise<StepsEnd> {
  const { ledger, guard, observations, budgets, conversation } = turn;
  const of = stepsOf(turn);
  const stepTools = await openStepTools(turn, { isLast: () => ledger.steps === of });
  let messages: ModelMessage[] = toFirstMessages(turn, EARLIER_EXCHANGES);

  for (let step = 1; step <= of; step += 1) {
    const before = endByClock(turn);
    if (before !== null) return before;
    ledger.steps = step;
    const forced = chooseForced(turn, { isLast: step === of });
    turn.emit({ type: "step-start", step, of, forced: forced ?? undefined });
    compactContext({ observations, evidence: conversation.evidence, budgets });
    messages = compactMessages(messages, budgets.saidBytes);
    const end = await runStep(turn, {
      instructions: stepTools.instructions,
      messages: toStepMessages(messages, observations),
      tools: await stepTools.tools(),
      forced,
    });
    recordMissedCalls(turn, end);
    const meanwhile = endByClock(turn);
    if (meanwhile !== null) return meanwhile;
    if (end.error !== null) return { stopReason: "model_error", detail: `The model failed in step ${step}: ${end.error}` };
    messages.push(...end.messages);
    if (end.text.trim() !== "") ledger.text = end.text.trim();
    if (ledger.final !== null) return step < of ? ofAnswer(turn) : { stopReason: "bounded_step_budget", detail: madeToAnswer(of) };
    if (end.toolCalls.length === 0 && end.text.trim() !== "" && forced === null) return ofAnswer(turn);
    guard.judgeStep(ledger.calls.filter((call) => call.step === step));
    if (guard.tripped !== null) return guard.tripped;
    const spent = overBudget(turn);
    if (spent !== null) return { stopReason: "bounded_step_budget", detail: spent };
  }
  const used = of === 1 ? "1 step of this turn was" : `${of} steps of this turn were`;
  return { stopReason: "bounded_step_budget", detail: `The ${used} used before the model was done.` };
}

function ofAnswer(turn: Turn): StepsEnd {
  return missedCapability(turn) ?? { stopReason: "complete_answer", detail: null };
}

/** Whether it was done by itself cannot be told then, so it is not claimed. */
function madeToAnswer(of: number): string {
  return `The model had to answer in the last of ${of} ${of === 1 ? "step" : "steps"}, done or not.`;
}

/** Null while the turn may go on. */
export function endByClock({ clock, budgets }: Turn): StepsEnd | null {
  switch (clock.stopped()) {
    case "aborted":
      return { stopReason: "aborted", detail: "The turn was ended from outside before it was done." };
    case "time":
      return { stopReason: "bounded_time", detail: `The ${budgets.wallMs / 1000} s of this turn were over before it was done.` };
    case null:
      return null;
  }
}
