import { generateText, Output } from "ai";
import { z } from "zod";
import { chartIntents, type TurnPlan } from "../../protocol/turn-plan.ts";
import { orAbort } from "../../tools/or-abort.ts";
import { describeError } from "../describe-error.ts";
import type { Turn } from "../open-turn.ts";
import { planByRules } from "./plan-by-rules.ts";

/** Every field may be left out: what the rules read from the question stands there instead. */
const planSchema = z.object({
  chartIntent: z
    .enum(chartIntents)
    .optional()
    .catch(undefined)
    .describe("explicit: the user asks for a chart, plot or figure. implied: a picture would help. none: numbers or words only."),
  measures: z.array(z.string()).optional().catch(undefined).describe("The numbers that are asked for, one phrase each."),
  population: z
    .string()
    .optional()
    .catch(undefined)
    .describe("What the measures are over. All of it, unless the user explicitly asks for a bounded subset."),
});

const instructions = `You read a question about data before anything is fetched. Say whether a picture is asked for, which measures are asked for, and over which population. Do not answer the question.
A total, net change, flow or threshold is over the whole population that was asked for; top-N and selections are display only.`;

/** The planning call. A turn is never lost to it: when it fails, the question is read by rules, and the plan says so. */
export async function planTurn(turn: Turn): Promise<void> {
  turn.plan = await readPlan(turn);
  turn.emit({ type: "plan", plan: turn.plan, steps: stepsOf(turn) });
}

export function stepsOf({ plan, budgets }: Pick<Turn, "plan" | "budgets">): number {
  return budgets.steps + (plan.chartIntent === "explicit" ? budgets.chartBoost : 0);
}

async function readPlan({ request, conversation, clock, ledger }: Turn): Promise<TurnPlan> {
  const { question, model } = request;
  try {
    const call = generateText({
      model,
      instructions,
      messages: [
        ...conversation.exchanges.slice(-3).flatMap((one) => [
          { role: "user" as const, content: one.question },
          { role: "assistant" as const, content: one.answer },
        ]),
        { role: "user", content: question },
      ],
      output: Output.object({ schema: planSchema, name: "plan" }),
      abortSignal: clock.stepsSignal,
      maxRetries: 1,
      providerOptions: { sluice: { phase: "plan" } },
    });
    const { output, usage } = await orAbort(call, clock.stepsSignal);
    ledger.tokens.input += usage.inputTokens ?? 0;
    ledger.tokens.output += usage.outputTokens ?? 0;
    const { because: _, ...rules } = planByRules(question, "");
    const said = Object.fromEntries(Object.entries(output).filter(([, value]) => value !== undefined));
    return { ...rules, ...said, source: "model" };
  } catch (error) {
    return planByRules(question, `The planning call gave no plan: ${describeError(error)}`);
  }
}
