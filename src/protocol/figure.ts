import { z } from "zod";

export const figureSeriesTypes = [
  "line",
  "step",
  "scatter",
  "stem",
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
export const figureScales = ["linear", "log", "symlog", "logit", "time", "category", "polar", "other"] as const;

/** A number; null where it is missing. An integer beyond 2^53 is text with all its digits. */
const value = z.union([z.number(), z.string().regex(/^-?\d{16,}$/), z.null()]);
/** The five numbers of a box or violin: low, lower quartile, median, upper quartile, high. */
const summary = z.array(value).length(5);
const values = z.array(z.union([value, summary]));
/** The same length on both sides, or [below, above]. */
const errors = z.array(z.union([value, z.array(value).length(2)])).optional();
const flags = z.array(z.boolean()).optional();
/** For each place, its index in the `tickLabels` of the axis. */
const categories = z.array(z.int().nonnegative()).optional();
/** The nanoseconds after each whole millisecond. Only for times that are finer than a microsecond. */
const nanoseconds = z.array(z.union([z.int().min(0).max(999_999), z.null()])).optional();

const axis = z.strictObject({
  /** Places are numbers on every scale. `time`: milliseconds since 1970-01-01 UTC. `category`: places of `tickLabels`. `polar`: angles in radians. */
  scale: z.enum(figureScales),
  label: z.string().optional(),
  /** The categories of the axis, or the tick labels that were set by hand. */
  tickLabels: z.array(z.strictObject({ at: z.number(), text: z.string() })).optional(),
  /** The zone that a time axis is written in. Without it, times are wall-clock times, written as if they were UTC. */
  zone: z.string().optional(),
});

/** Fields with an entry for each point, bar or slice. */
const listsOfPoints = [
  ...(["xCategories", "yCategories", "xNanoseconds", "yNanoseconds", "labels", "xerr", "yerr"] as const),
  ...(["lolims", "uplims", "xlolims", "xuplims", "baseline"] as const),
];

const series = z
  .strictObject({
    type: z.enum(figureSeriesTypes),
    label: z.string().optional(),
    /** Places; the values of horizontal bars; the numbers 0, 1, 2, … of a pie's slices; the summaries of horizontal boxes. */
    x: values,
    y: values,
    xCategories: categories,
    yCategories: categories,
    xNanoseconds: nanoseconds,
    yNanoseconds: nanoseconds,
    /** The names of a pie's slices, or of bars, boxes and points that have names of their own. */
    labels: z.array(z.union([z.string(), z.null()])).optional(),
    xerr: errors,
    yerr: errors,
    /** Error bars: the points that are a lower or an upper limit. */
    lolims: flags,
    uplims: flags,
    xlolims: flags,
    xuplims: flags,
    /** Heatmap: rows of values. Scatter: one row with the values behind the colours. Box: the outliers of each box. */
    z: z.array(z.array(value)).optional(),
    /** Histogram: one more entry than bins. Heatmap: the edges along x and along y. */
    edges: z.array(z.union([value, z.array(value)])).optional(),
    /** Where bars, areas and stems start, if not at zero. */
    baseline: z.array(value).optional(),
    /** Where the steps of a line are: before each point, in the middle, or after it. */
    where: z.enum(["pre", "mid", "post"]).optional(),
    /** Of a histogram, stem, box or violin. Default: vertical. */
    orientation: z.literal("horizontal").optional(),
  })
  .refine((one) => one.type === "heatmap" || one.x.length === one.y.length, { error: "x and y must have the same length" })
  .refine((one) => one.type !== "heatmap" || (one.z?.length === one.y.length && one.z.every((row) => row.length === one.x.length)), {
    error: "z must have a row for each y and a column for each x",
  })
  .refine((one) => one.type === "heatmap" || listsOfPoints.every((name) => (one[name]?.length ?? one.x.length) === one.x.length), {
    error: "lists that belong to points must be as long as x",
  })
  .refine((one) => one.type !== "histogram" || one.edges?.length === one.x.length + 1, {
    error: "a histogram must have one more edge than bins",
  });

const axes = z
  .strictObject({
    title: z.string().optional(),
    x: axis,
    y: axis,
    series: z.array(series),
    /** Parts of the picture that are not in `series`. `count`: how many such parts, if more than one. */
    unread: z.array(z.strictObject({ artist: z.string(), reason: z.string(), count: z.int().min(2).optional() })),
  })
  .refine((one) => one.series.every((of) => isWithin(of.xCategories, one.x) && isWithin(of.yCategories, one.y)), {
    error: "xCategories and yCategories must be indices of the axis' tickLabels",
  });

function isWithin(indices: readonly number[] | undefined, { tickLabels = [] }: z.infer<typeof axis>): boolean {
  return indices === undefined || indices.every((index) => index < tickLabels.length);
}

/** The data behind a picture, read from the matplotlib artists that drew it. `readFigure` opens data of older versions. */
export const figureSchema = z.strictObject({
  schemaVersion: z.literal(2),
  title: z.string().optional(),
  xLabel: z.string().optional(),
  yLabel: z.string().optional(),
  /** Texts inside the picture that are no titles and labels: annotations, legend entries without a series. */
  texts: z.array(z.string()).optional(),
  axes: z.array(axes),
});

export type FigureValue = z.infer<typeof value>;
export type FigureSummary = z.infer<typeof summary>;
export type FigureSeries = z.infer<typeof series>;
export type FigureAxis = z.infer<typeof axis>;
export type FigureAxes = z.infer<typeof axes>;
export type Figure = z.infer<typeof figureSchema>;
