import { z } from "zod";

export const chartTypes = ["line", "bar", "area", "scatter", "composed", "histogram", "heatmap", "candlestick"] as const;
export const seriesTypes = ["line", "bar", "area", "scatter"] as const;
export const axisTypes = ["time", "category", "number"] as const;
export const valueFormats = ["number", "percent", "currency", "compact"] as const;
export const maxChartRows = 5000;

const key = z.string().min(1).max(200);
const label = z.string().max(500);
const place = z.union([z.string().max(100), z.number()]);

const axis = z.strictObject({
  type: z.enum(axisTypes).optional(),
  label: label.optional(),
  format: z.enum(valueFormats).optional(),
  /** How the data writes 12 %: 0.12 (`fraction`) or 12 (`percent_points`). Only with format percent. */
  valueScale: z.enum(["fraction", "percent_points"]).optional(),
  /** ISO 4217 code. Only with format currency. */
  currency: z.string().length(3).optional(),
});

const series = z.strictObject({
  key,
  label: label.optional(),
  /** Only in a composed chart. */
  type: z.enum(seriesTypes).optional(),
  /** Column with the length of the error bar on each side. */
  errorKey: key.optional(),
  yAxis: z.enum(["left", "right"]).optional(),
  /** The entry of `expectedMeasures` that this series shows. */
  satisfies: label.optional(),
});

const referenceLine = z.strictObject({ axis: z.enum(["x", "y", "yRight"]), value: place, label: label.optional() });

const referenceArea = z.strictObject({
  x1: place.optional(),
  x2: place.optional(),
  y1: z.number().optional(),
  y2: z.number().optional(),
  label: label.optional(),
});

/** A chart as data. check-chart.ts has the rules between its parts and its rows. Run scripts/write-chart-schema.ts after a change. */
export const chartSpecSchema = z.strictObject({
  type: z.enum(chartTypes),
  xKey: key,
  series: z.array(series).max(50),
  expectedMeasures: z.array(label).max(50).optional(),
  xAxis: axis.optional(),
  yAxis: axis.optional(),
  yAxisRight: axis.optional(),
  stacked: z.boolean().optional(),
  brush: z.boolean().optional(),
  legend: z.boolean().optional(),
  referenceLines: z.array(referenceLine).max(50).optional(),
  referenceAreas: z.array(referenceArea).max(50).optional(),
  /** Heatmap: the columns of the y position and of the value. */
  yKey: key.optional(),
  valueKey: key.optional(),
  /** Candlestick: the four columns. */
  ohlc: z.strictObject({ openKey: key, highKey: key, lowKey: key, closeKey: key }).optional(),
});

/** A missing value is null, never NaN. */
const chartCell = z.union([z.string().max(10_000), z.number(), z.null()]);
const chartRow = z.record(z.string(), chartCell);
export const chartRowsSchema = z.array(chartRow).max(maxChartRows);

export type ChartType = (typeof chartTypes)[number];
export type ChartAxis = z.infer<typeof axis>;
export type ChartSeries = z.infer<typeof series>;
export type ReferenceLine = z.infer<typeof referenceLine>;
export type ReferenceArea = z.infer<typeof referenceArea>;
export type ChartSpec = z.infer<typeof chartSpecSchema>;
export type ChartCell = z.infer<typeof chartCell>;
export type ChartRow = z.infer<typeof chartRow>;
