import { z } from "zod";

export const figureSeriesTypes = [
  "line",
  "step",
  "scatter",
  "bar",
  "barh",
  "histogram",
  "errorbar",
  "area",
  "pie",
  "box",
  "violin",
  "heatmap",
] as const;
export const figureScales = ["linear", "log", "time", "category"] as const;

/** A position or value: text on time and category scales, null for a missing value. */
const value = z.union([z.string(), z.number(), z.null()]);
const amount = z.union([z.number(), z.null()]);
/** The five numbers of a box or violin: low, lower quartile, median, upper quartile, high. */
const summary = z.array(amount).length(5);
const values = z.array(z.union([value, summary]));
/** The same length on both sides, or [below, above]. */
const errors = z.array(z.union([amount, z.array(amount).length(2)])).optional();
const scale = z.enum(figureScales);

const series = z
  .strictObject({
    type: z.enum(figureSeriesTypes),
    label: z.string().optional(),
    /** Positions; the values of horizontal bars; the labels of a pie; the summaries of horizontal boxes. */
    x: values,
    y: values,
    xerr: errors,
    yerr: errors,
    /** Heatmap: rows of values. Scatter: one row with the values behind the colours. Box: the outliers of each box. */
    z: z.array(z.array(amount)).optional(),
    /** Histogram: one more entry than bins. Heatmap: the edges along x and along y. */
    edges: z.array(z.union([value, z.array(value)])).optional(),
    /** Where bars and areas start, if not at zero. */
    baseline: z.array(value).optional(),
  })
  .refine((series) => series.type === "heatmap" || series.x.length === series.y.length, { error: "x and y must have the same length" })
  .refine(
    (series) =>
      series.type !== "heatmap" || (series.z?.length === series.y.length && series.z.every((row) => row.length === series.x.length)),
    { error: "z must have a row for each y and a column for each x" },
  )
  .refine((series) => [series.xerr, series.yerr, series.baseline].every((list) => list === undefined || list.length === series.x.length), {
    error: "errors and baseline must be as long as x",
  })
  .refine((series) => series.type !== "histogram" || series.edges?.length === series.x.length + 1, {
    error: "a histogram must have one more edge than bins",
  });

const axes = z.strictObject({
  title: z.string().optional(),
  xLabel: z.string().optional(),
  yLabel: z.string().optional(),
  xScale: scale,
  yScale: scale,
  series: z.array(series),
  /** Parts of the picture that are not in `series`. */
  unread: z.array(z.strictObject({ artist: z.string(), reason: z.string() })),
});

/** The data behind a picture, read from the matplotlib artists that drew it. */
export const figureSchema = z.strictObject({ axes: z.array(axes) });

export type FigureValue = z.infer<typeof value>;
export type FigureSummary = z.infer<typeof summary>;
export type FigureSeries = z.infer<typeof series>;
export type FigureAxes = z.infer<typeof axes>;
export type Figure = z.infer<typeof figureSchema>;
