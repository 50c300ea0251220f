import { generateText, NoObjectGeneratedError, Output, type LanguageModelUsage } from "ai";
import type { TurnPlan } from "../../protocol/turn-plan.ts";
import { orAbort } from "../../waiting/or-abort.ts";
import { describeError } from "../describe-error.ts";
import { toFirstMessages } from "../first-messages.ts";
import type { Turn } from "../open-turn.ts";
import { planByRules } from "./plan-by-rules.ts";
import { findPlan, planSchema, type SaidPlan } from "./read-plan.ts";

const instructions = `You read a question about data before anything is fetched. Do not answer it. Say whether a picture is asked for, which measures are asked for, and over which population, as one JSON object:
{"chartIntent": "none" | "implied" | "explicit", "measures": ["…"], "population": "…"}
chartIntent is explicit only when the user asks for a chart, plot or figure. A total, net change, flow or threshold is over the whole population that was asked for; top-N and selections are display only.`;

const EARLIER_EXCHANGES = 3;

/** The planning call. A turn is never lost to it: when it fails, the question is read by rules, and the plan says so. */
export async function planTurn(turn: Turn): Promise<void> {
  turn.plan = await makePlan(turn);
  turn.emit({ type: "plan", plan: turn.plan, steps: stepsOf(turn) });
}

export function stepsOf({ plan, budgets }: Pick<Turn, "plan" | "budgets">): number {
  return budgets.steps + (plan.chartIntent === "explicit" ? budgets.chartBoost : 0);
}

async function makePlan(turn: Turn): Promise<TurnPlan> {
  const { question } = turn.request;
  try {
    const said = await askForPlan(turn);
    const { because: _, ...rules } = planByRules(question, "");
    return { ...rules, ...said, source: "model" };
  } catch (error) {
    return planByRules(question, `The planning call gave no plan: ${describeError(error)}`);
  }
}

async function askForPlan(turn: Turn): Promise<SaidPlan> {
  const { request, clock, ledger } = turn;
  const call = generateText({
    model: request.model,
    instructions,
    messages: toFirstMessages(turn, EARLIER_EXCHANGES),
    output: Output.object({ schema: planSchema, name: "plan" }),
    abortSignal: clock.stepsSignal,
    maxRetries: 1,
    providerOptions: { sluice: { phase: "plan" } },
  }).then(
    ({ output, usage }) => {
      count(usage);
      return output;
    },
    (error: unknown) => {
      if (!NoObjectGeneratedError.isInstance(error)) throw error;
      count(error.usage);
      const said = findPlan(error.text ?? "");
      if (said === null) throw error;
      return said;
    },
  );
  return await orAbort(call, clock.stepsSignal);

  /** An answer that is no plan was paid for, too. */
  function count(usage: LanguageModelUsage | undefined): void {
    ledger.tokens.input += usage?.inputTokens ?? 0;
    ledger.tokens.output += usage?.outputTokens ?? 0;
  }
}
