import { z } from "zod";

export const chartIntents = ["none", "implied", "explicit"] as const;

/** What the question asks for, determined before the first step. */
export const turnPlanSchema = z.strictObject({
  chartIntent: z.enum(chartIntents),
  /** The requested numbers. */
  measures: z.array(z.string()),
  /** What the measures cover. */
  population: z.string(),
  /** `rules` when the planning call returned no plan; `because` says why. */
  source: z.enum(["model", "rules"]),
  because: z.string().optional(),
});

export type ChartIntent = (typeof chartIntents)[number];
export type TurnPlan = z.infer<typeof turnPlanSchema>;
