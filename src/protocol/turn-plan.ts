import { z } from "zod";

export const chartIntents = ["none", "implied", "explicit"] as const;
export type ChartIntent = (typeof chartIntents)[number];

/** What a question asks for, as it was read before the first step. */
export interface TurnPlan {
  chartIntent: ChartIntent;
  /** The numbers that are asked for. */
  measures: string[];
  /** What they are over: all of it, unless the question bounds it. */
  population: string;
  /** Who read the question. `rules` when the planning call gave nothing; `because` says why. */
  source: "model" | "rules";
  because?: string | undefined;
}

export const turnPlanSchema: z.ZodType<TurnPlan> = z.strictObject({
  chartIntent: z.enum(chartIntents),
  measures: z.array(z.string()),
  population: z.string(),
  source: z.enum(["model", "rules"]),
  because: z.string().optional(),
});
