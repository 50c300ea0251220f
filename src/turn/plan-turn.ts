import { generateText, jsonSchema, NoObjectGeneratedError, Output, type LanguageModel, type LanguageModelUsage } from "ai";
import { z } from "zod";
import { orAbort } from "../concurrency/or-abort.ts";
import { isRecord } from "../text/json.ts";
import { chartIntents, type ChartIntent, type TurnPlan } from "../protocol/turn-plan.ts";
import type { Conversation } from "./create-conversation.ts";
import { describeError } from "./describe-error.ts";
import { toFirstMessages } from "../prompts/instructions.ts";
import type { Tokens } from "./ledger.ts";

const instructions = `You read a question about data before anything is fetched. Do not answer it. Say whether a picture is asked for, which measures are asked for, and over which population, as one JSON object:
{"chartIntent": "none" | "implied" | "explicit", "measures": ["…"], "population": "…"}
chartIntent is explicit only when the user asks for a chart, plot or figure. A total, net change, flow or threshold is over the whole population that was asked for; top-N and selections are display only.`;

const EARLIER_EXCHANGES = 3;

export interface PlanOptions {
  readonly question: string;
  readonly conversation: Conversation;
  readonly model: LanguageModel;
  /** What the call costs is added here. */
  readonly tokens: Tokens;
  readonly signal: AbortSignal;
}

/** The planning call. A turn is never lost to it: when it fails, the question is read by rules, and the plan says so. */
export async function planTurn(options: PlanOptions): Promise<TurnPlan> {
  const { question } = options;
  try {
    const said = await orAbort(askForPlan(options), options.signal);
    const { because: _, ...rules } = planByRules(question, "");
    return { ...rules, ...said, source: "model" };
  } catch (error) {
    return planByRules(question, `The planning call gave no plan: ${describeError(error)}`);
  }
}

async function askForPlan({ question, conversation, model, tokens, signal }: PlanOptions): Promise<SaidPlan> {
  try {
    const { output, usage } = await generateText({
      model,
      instructions,
      messages: toFirstMessages(conversation, question, EARLIER_EXCHANGES),
      output: Output.object({ schema: planSchema, name: "plan" }),
      abortSignal: signal,
      maxRetries: 1,
      providerOptions: { sluice: { phase: "plan" } },
    });
    count(usage);
    return output;
  } catch (error) {
    if (!NoObjectGeneratedError.isInstance(error)) throw error;
    count(error.usage); // an answer that is no plan was paid for, too
    const said = findPlan(error.text ?? "");
    if (said === null) throw error;
    return said;
  }

  function count(usage: LanguageModelUsage | undefined): void {
    tokens.input += usage?.inputTokens ?? 0;
    tokens.output += usage?.outputTokens ?? 0;
  }
}

/** What a model said of a question. Every field may be left out. */
export type SaidPlan = Partial<z.infer<typeof saidSchema>>;

const saidSchema = z.strictObject({
  chartIntent: z
    .enum(chartIntents)
    .describe("explicit: the user asks for a chart, plot or figure. implied: a picture would help. none: numbers or words only."),
  measures: z.array(z.string()).describe("The numbers that are asked for, one phrase each."),
  population: z
    .string()
    .trim()
    .refine((text) => text !== "") // not published: providers with strict schemas refuse a minimum length
    .describe("What the measures are over. All of it, unless the user explicitly asks for a bounded subset."),
});

const { $schema: _, ...published } = z.toJSONSchema(saidSchema);

/** Published with every field required, as providers with strict schemas demand; read without demanding any. */
const planSchema = jsonSchema<SaidPlan>(published as Parameters<typeof jsonSchema>[0], {
  validate: (value) =>
    isRecord(value) ? { success: true, value: readPlan(value) } : { success: false, error: new Error("The plan is not an object.") },
});

/** The fields that are as they should be. */
export function readPlan(value: unknown): SaidPlan {
  const fields = Object.entries(saidSchema.shape).map(([name, schema]) => {
    return [name, schema.safeParse(isRecord(value) ? value[name] : undefined).data] as const;
  });
  return Object.fromEntries(fields.filter(([, field]) => field !== undefined));
}

/** From text around it, as models without structured output write it; null when there is none. */
export function findPlan(text: string): SaidPlan | null {
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
const refusesPicture =
  /\b(?:no|without|not|don't|do not)\b[^.?!]{0,24}\b(?:an?y? )?(?:chart|plot|graph|figure|diagram|picture|visuali[sz]ation|draw)/i;
const isBestSeen =
  /\b(?:trend|over time|evol(?:ve|ution)|history of|distribution|compare|comparison|correlat\w+|develop(?:ed|ment) (?:of|over)|by (?:day|week|month|quarter|year))\b/i;

/** Reads a question without a model: what it says about pictures, and itself as the measure. */
export function planByRules(question: string, because: string): TurnPlan {
  return { chartIntent: readChartIntent(question), measures: [], population: "everything that was asked about", source: "rules", because };
}

export function readChartIntent(question: string): ChartIntent {
  if (refusesPicture.test(question)) return "none";
  if (asksForPicture.test(question)) return "explicit";
  return isBestSeen.test(question) ? "implied" : "none";
}
