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
export type FigureValue = string | number | null;
/** The five numbers of a box or violin: low, lower quartile, median, upper quartile, high. */
export type FigureSummary = (number | null)[];

export interface FigureSeries {
  type: (typeof figureSeriesTypes)[number];
  label?: string | undefined;
  /** Places, or the values of horizontal bars; for a pie its labels. Summaries when boxes lie on their side. */
  x: (FigureValue | FigureSummary)[];
  y: (FigureValue | FigureSummary)[];
  /** A length on both sides, or [below, above]. */
  xerr?: (number | null | (number | null)[])[] | undefined;
  yerr?: (number | null | (number | null)[])[] | undefined;
  /** Heatmap: rows of values. Scatter: one row with the numbers behind the colours. Box: the outliers of each box. */
  z?: (number | null)[][] | undefined;
  /** Histogram: one more than there are bins. Heatmap: the edges along x and along y. */
  edges?: (FigureValue | FigureValue[])[] | undefined;
  /** Where bars and areas start, when that is not zero. */
  baseline?: FigureValue[] | undefined;
}

export interface FigureAxes {
  title?: string | undefined;
  xLabel?: string | undefined;
  yLabel?: string | undefined;
  xScale: (typeof figureScales)[number];
  yScale: (typeof figureScales)[number];
  series: FigureSeries[];
  /** What is in the picture and not in `series`. */
  unread: { artist: string; reason: string }[];
}

/** The data behind a picture, read back from the artists that drew it. */
export interface Figure {
  axes: FigureAxes[];
}

const value = z.union([z.string(), z.number(), z.null()]);
const amount = z.union([z.number(), z.null()]);
const values = z.array(z.union([value, z.array(amount).length(5)]));
const errors = z.array(z.union([amount, z.array(amount).length(2)])).optional();
const scale = z.enum(figureScales);

const series = z
  .strictObject({
    type: z.enum(figureSeriesTypes),
    label: z.string().optional(),
    x: values,
    y: values,
    xerr: errors,
    yerr: errors,
    z: z.array(z.array(amount)).optional(),
    edges: z.array(z.union([value, z.array(value)])).optional(),
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

export const figureSchema: z.ZodType<Figure> = z.strictObject({
  axes: z.array(
    z.strictObject({
      title: z.string().optional(),
      xLabel: z.string().optional(),
      yLabel: z.string().optional(),
      xScale: scale,
      yScale: scale,
      series: z.array(series),
      unread: z.array(z.strictObject({ artist: z.string(), reason: z.string() })),
    }),
  ),
});
