import { jsonSchema, type Schema } from "ai";
import { z } from "zod";
import { isRecord } from "../../errors/is-record.ts";
import { chartIntents, type TurnPlan } from "../../protocol/turn-plan.ts";

/** What a model said of a question. Every field may be left out. */
export type SaidPlan = Partial<Pick<TurnPlan, "chartIntent" | "measures" | "population">>;

const lenient = z.object({
  chartIntent: z.enum(chartIntents).optional().catch(undefined),
  measures: z.array(z.string()).optional().catch(undefined),
  population: z.string().trim().min(1).optional().catch(undefined),
});

/** Published with every field required, as providers with strict schemas demand; read without demanding any. */
export const planSchema: Schema<SaidPlan> = jsonSchema<SaidPlan>(
  {
    type: "object",
    properties: {
      chartIntent: {
        type: "string",
        enum: [...chartIntents],
        description: "explicit: the user asks for a chart, plot or figure. implied: a picture would help. none: numbers or words only.",
      },
      measures: { type: "array", items: { type: "string" }, description: "The numbers that are asked for, one phrase each." },
      population: {
        type: "string",
        description: "What the measures are over. All of it, unless the user explicitly asks for a bounded subset.",
      },
    },
    required: ["chartIntent", "measures", "population"],
    additionalProperties: false,
  },
  {
    validate: (value) =>
      isRecord(value) ? { success: true, value: readPlan(value) } : { success: false, error: new Error("The plan is not an object.") },
  },
);

export function readPlan(value: unknown): SaidPlan {
  const { data = {} } = lenient.safeParse(value);
  return Object.fromEntries(Object.entries(data).filter(([, field]) => field !== undefined));
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
