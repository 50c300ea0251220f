import { generateText, NoObjectGeneratedError, Output } from "ai";
import type { TurnPlan } from "../../protocol/turn-plan.ts";
import { orAbort } from "../../waiting/or-abort.ts";
import { describeError } from "../describe-error.ts";
import type { Turn } from "../open-turn.ts";
import { planByRules } from "./plan-by-rules.ts";
import { findPlan, planSchema, type SaidPlan } from "./read-plan.ts";

const instructions = `You read a question about data before anything is fetched. Do not answer it. Say whether a picture is asked for, which measures are asked for, and over which population, as one JSON object:
{"chartIntent": "none" | "implied" | "explicit", "measures": ["…"], "population": "…"}
chartIntent is explicit only when the user asks for a chart, plot or figure. A total, net change, flow or threshold is over the whole population that was asked for; top-N and selections are display only.`;

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

async function askForPlan({ request, conversation, clock, ledger }: Turn): Promise<SaidPlan> {
  const earlier = conversation.exchanges.slice(-3).flatMap((one) => [
    { role: "user" as const, content: one.question },
    { role: "assistant" as const, content: one.answer },
  ]);
  const call = generateText({
    model: request.model,
    instructions,
    messages: [...earlier, { role: "user", content: request.question }],
    output: Output.object({ schema: planSchema, name: "plan" }),
    abortSignal: clock.stepsSignal,
    maxRetries: 1,
    providerOptions: { sluice: { phase: "plan" } },
  }).then(
    ({ output, usage }) => ({ said: output, usage }),
    (error: unknown) => {
      const said = NoObjectGeneratedError.isInstance(error) ? findPlan(error.text ?? "") : null;
      if (said === null) throw error;
      return { said, usage: (error as NoObjectGeneratedError).usage };
    },
  );
  const { said, usage } = await orAbort(call, clock.stepsSignal);
  ledger.tokens.input += usage?.inputTokens ?? 0;
  ledger.tokens.output += usage?.outputTokens ?? 0;
  return said;
}
