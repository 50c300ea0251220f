import { generateText, jsonSchema, NoObjectGeneratedError, Output, type LanguageModel } from "ai";
import { z } from "zod";
import { orAbort } from "../concurrency/or-abort.ts";
import { describeModelFailure, isLasting } from "../models/describe-model-failure.ts";
import { planFieldDescriptions, planInstructions, wholePopulation } from "../prompts/turn-prompts.ts";
import { chartIntents, type ChartIntent, type TurnPlan } from "../protocol/turn-plan.ts";
import type { ModelFailure } from "../protocol/turn-result.ts";
import { isRecord } from "../text/json.ts";
import { toModelMessages, type Conversation } from "./create-conversation.ts";
import { describeError } from "./describe-error.ts";
import { addUsage, type Tokens } from "./ledger.ts";

const EARLIER_EXCHANGES = 3;

export interface PlanOptions {
  readonly today: string;
  readonly question: string;
  readonly conversation: Conversation;
  readonly model: LanguageModel;
  /** The usage of the call is added to these counters. */
  readonly tokens: Tokens;
  readonly signal: AbortSignal;
}

export interface Planned {
  readonly plan: TurnPlan;
  /** Set when the model failed in a way that its next call would fail in, too. */
  readonly failure: ModelFailure | null;
}

/** Asks the model for a plan. Never rejects: when the call fails, rules read the question, and the plan says why. */
export async function planTurn(options: PlanOptions): Promise<Planned> {
  const { question, model, signal } = options;
  try {
    const modelPlan = await orAbort(askForPlan(options), options.signal);
    const { because: _, ...defaults } = planByRules(question, "");
    return { plan: { ...defaults, ...modelPlan, source: "model" }, failure: null };
  } catch (error) {
    const failure = signal.aborted ? null : describeModelFailure(error, model);
    // A failure of the provider is stated once, where the turn ends with it.
    const reason = failure === null || failure.code === "MODEL_FAILED" ? `: ${describeError(error)}` : ".";
    const plan = planByRules(question, `The planning call returned no plan${reason}`);
    return { plan, failure: failure !== null && isLasting(failure) ? failure : null };
  }
}

async function askForPlan({ today, question, conversation, model, tokens, signal }: PlanOptions): Promise<ModelPlan> {
  try {
    const { output, usage } = await generateText({
      model,
      instructions: `${planInstructions}\n${today}`,
      messages: toModelMessages(conversation, question, EARLIER_EXCHANGES),
      output: Output.object({ schema: planSchema, name: "plan" }),
      abortSignal: signal,
      maxRetries: 2,
      providerOptions: { sluice: { phase: "plan" } },
    });
    addUsage(tokens, usage);
    return output;
  } catch (error) {
    if (!NoObjectGeneratedError.isInstance(error)) throw error;
    addUsage(tokens, error.usage); // an unusable answer costs tokens, too
    const plan = findPlan(error.text ?? "");
    if (plan === null) throw error;
    return plan;
  }
}

/** A plan as the model wrote it. Every field is optional. */
export type ModelPlan = Partial<z.infer<typeof modelPlanSchema>>;

const modelPlanSchema = z.strictObject({
  chartIntent: z.enum(chartIntents).describe(planFieldDescriptions.chartIntent),
  measures: z.array(z.string()).describe(planFieldDescriptions.measures),
  population: z
    .string()
    .trim()
    .refine((text) => text !== "") // not a minimum length, because providers with strict schemas reject that keyword
    .describe(planFieldDescriptions.population),
});

const { $schema: _, ...publishedSchema } = z.toJSONSchema(modelPlanSchema);

/** The published schema requires every field, because strict providers demand it. Reading a plan requires none. */
const planSchema = jsonSchema<ModelPlan>(publishedSchema as Parameters<typeof jsonSchema>[0], {
  validate: (value) =>
    isRecord(value) ? { success: true, value: readPlan(value) } : { success: false, error: new Error("The plan is not an object.") },
});

/** Returns the valid fields and ignores the others. */
export function readPlan(value: unknown): ModelPlan {
  const fields = Object.entries(modelPlanSchema.shape).map(([name, schema]) => {
    return [name, schema.safeParse(isRecord(value) ? value[name] : undefined).data] as const;
  });
  return Object.fromEntries(fields.filter(([, field]) => field !== undefined));
}

/** Finds a plan inside other text, as models without structured output write it; null when there is none. */
export function findPlan(text: string): ModelPlan | null {
  const [start, end] = [text.indexOf("{"), text.lastIndexOf("}")];
  if (start === -1 || end < start) return null;
  try {
    const value: unknown = JSON.parse(text.slice(start, end + 1));
    return isRecord(value) ? readPlan(value) : null;
  } catch {
    return null;
  }
}

const asksForPicture =
  /\b(?:chart|plot|graph|figure|diagram|histogram|heat ?map|candlestick|scatter|draw|visuali[sz]e|visuali[sz]ation|picture|sketch)(?:s|ed|ting)?\b/i;
const declinesPicture =
  /\b(?:no|without|not|don't|do not)\b[^.?!]{0,24}\b(?:an?y? )?(?:chart|plot|graph|figure|diagram|picture|visuali[sz]ation|draw)/i;
const benefitsFromPicture =
  /\b(?:trend|over time|evol(?:ve|ution)|history of|distribution|compare|comparison|correlat\w+|develop(?:ed|ment) (?:of|over)|by (?:day|week|month|quarter|year))\b/i;

/** Plans without a model: reads the chart intent from the question's words. */
export function planByRules(question: string, because: string): TurnPlan {
  return { chartIntent: readChartIntent(question), measures: [], population: wholePopulation, source: "rules", because };
}

export function readChartIntent(question: string): ChartIntent {
  if (declinesPicture.test(question)) return "none";
  if (asksForPicture.test(question)) return "explicit";
  return benefitsFromPicture.test(question) ? "implied" : "none";
}
