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

/** A place or value: text on time and category scales, null for a gap. */
const value = z.union([z.string(), z.number(), z.null()]);
const amount = z.union([z.number(), z.null()]);
/** The five numbers of a box or violin: low, lower quartile, median, upper quartile, high. */
const summary = z.array(amount).length(5);
const values = z.array(z.union([value, summary]));
/** A length on both sides, or [below, above]. */
const errors = z.array(z.union([amount, z.array(amount).length(2)])).optional();
const scale = z.enum(figureScales);

const series = z
  .strictObject({
    type: z.enum(figureSeriesTypes),
    label: z.string().optional(),
    /** Places, or the values of horizontal bars; for a pie its labels. Summaries when boxes lie on their side. */
    x: values,
    y: values,
    xerr: errors,
    yerr: errors,
    /** Heatmap: rows of values. Scatter: one row with the numbers behind the colours. Box: the outliers of each box. */
    z: z.array(z.array(amount)).optional(),
    /** Histogram: one more than there are bins. Heatmap: the edges along x and along y. */
    edges: z.array(z.union([value, z.array(value)])).optional(),
    /** Where bars and areas start, when that is not zero. */
    baseline: z.array(value).optional(),
  })
  .refine((one) => one.type === "heatmap" || one.x.length === one.y.length, { error: "x and y are not equally long" })
  .refine((one) => one.type !== "heatmap" || (one.z?.length === one.y.length && one.z.every((row) => row.length === one.x.length)), {
    error: "z does not have a row for each y and a column for each x",
  })
  .refine((one) => [one.xerr, one.yerr, one.baseline].every((list) => list === undefined || list.length === one.x.length), {
    error: "errors and baseline are not as long as x",
  })
  .refine((one) => one.type !== "histogram" || one.edges?.length === one.x.length + 1, {
    error: "a histogram has one edge more than bins",
  });

const axes = z.strictObject({
  title: z.string().optional(),
  xLabel: z.string().optional(),
  yLabel: z.string().optional(),
  xScale: scale,
  yScale: scale,
  series: z.array(series),
  /** What is in the picture and not in `series`. */
  unread: z.array(z.strictObject({ artist: z.string(), reason: z.string() })),
});

/** The data behind a picture, read back from the artists that drew it. */
export const figureSchema = z.strictObject({ axes: z.array(axes) });

export type FigureValue = z.infer<typeof value>;
export type FigureSummary = z.infer<typeof summary>;
export type FigureSeries = z.infer<typeof series>;
export type FigureAxes = z.infer<typeof axes>;
export type Figure = z.infer<typeof figureSchema>;
