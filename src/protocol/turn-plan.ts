import { z } from "zod";

export const chartIntents = ["none", "implied", "explicit"] as const;

/** What a question asks for, as it was read before the first step. */
export const turnPlanSchema = z.strictObject({
  chartIntent: z.enum(chartIntents),
  /** The numbers that are asked for. */
  measures: z.array(z.string()),
  /** What they are over: all of it, unless the question bounds it. */
  population: z.string(),
  /** Who read the question. `rules` when the planning call gave nothing; `because` says why. */
  source: z.enum(["model", "rules"]),
  because: z.string().optional(),
});

export type ChartIntent = (typeof chartIntents)[number];
export type TurnPlan = z.infer<typeof turnPlanSchema>;
