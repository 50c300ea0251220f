import { z } from "zod";

/** The types of chart that exist. */
export const chartTypes = ["line", "bar", "area", "scatter", "composed", "histogram", "heatmap", "candlestick"] as const;
export const seriesTypes = ["line", "bar", "area", "scatter"] as const;
export const axisTypes = ["time", "category", "number"] as const;
export const valueFormats = ["number", "percent", "currency", "compact"] as const;
export const maxChartRows = 5000;

export type ChartType = (typeof chartTypes)[number];

export interface ChartAxis {
  type?: (typeof axisTypes)[number] | undefined;
  label?: string | undefined;
  format?: (typeof valueFormats)[number] | undefined;
  /** What a percent is written as in the data: 0.12 or 12. Only with format percent. */
  valueScale?: "fraction" | "percent_points" | undefined;
  /** ISO 4217, with format currency. */
  currency?: string | undefined;
}

export interface ChartSeries {
  key: string;
  label?: string | undefined;
  /** Only in a composed chart. */
  type?: (typeof seriesTypes)[number] | undefined;
  /** Column with the length of the error bar on either side. */
  errorKey?: string | undefined;
  yAxis?: "left" | "right" | undefined;
  /** Which of `expectedMeasures` this series shows. */
  satisfies?: string | undefined;
}

export interface ReferenceLine {
  axis: "x" | "y" | "yRight";
  value: string | number;
  label?: string | undefined;
}

export interface ReferenceArea {
  x1?: string | number | undefined;
  x2?: string | number | undefined;
  y1?: number | undefined;
  y2?: number | undefined;
  label?: string | undefined;
}

/** A chart as data. Which rules hold between its parts and its rows is in check-chart.ts. */
export interface ChartSpec {
  type: ChartType;
  xKey: string;
  series: ChartSeries[];
  expectedMeasures?: string[] | undefined;
  xAxis?: ChartAxis | undefined;
  yAxis?: ChartAxis | undefined;
  yAxisRight?: ChartAxis | undefined;
  stacked?: boolean | undefined;
  brush?: boolean | undefined;
  legend?: boolean | undefined;
  referenceLines?: ReferenceLine[] | undefined;
  referenceAreas?: ReferenceArea[] | undefined;
  /** Heatmap: the column of rows, and the column of values. */
  yKey?: string | undefined;
  valueKey?: string | undefined;
  /** Candlestick: its four columns. */
  ohlc?: { openKey: string; highKey: string; lowKey: string; closeKey: string } | undefined;
}

/** A gap is null; NaN does not exist here. */
export type ChartCell = string | number | null;
export type ChartRow = Record<string, ChartCell>;

const key = z.string().min(1).max(200);
const label = z.string().max(500);
const place = z.union([z.string().max(100), z.number()]);

const axis = z.strictObject({
  type: z.enum(axisTypes).optional(),
  label: label.optional(),
  format: z.enum(valueFormats).optional(),
  valueScale: z.enum(["fraction", "percent_points"]).optional(),
  currency: z.string().length(3).optional(),
});

const series = z.strictObject({
  key,
  label: label.optional(),
  type: z.enum(seriesTypes).optional(),
  errorKey: key.optional(),
  yAxis: z.enum(["left", "right"]).optional(),
  satisfies: label.optional(),
});

export const chartSpecSchema: z.ZodType<ChartSpec> = z.strictObject({
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
  referenceLines: z
    .array(z.strictObject({ axis: z.enum(["x", "y", "yRight"]), value: place, label: label.optional() }))
    .max(50)
    .optional(),
  referenceAreas: z
    .array(
      z.strictObject({
        x1: place.optional(),
        x2: place.optional(),
        y1: z.number().optional(),
        y2: z.number().optional(),
        label: label.optional(),
      }),
    )
    .max(50)
    .optional(),
  yKey: key.optional(),
  valueKey: key.optional(),
  ohlc: z.strictObject({ openKey: key, highKey: key, lowKey: key, closeKey: key }).optional(),
});

export const chartRowsSchema: z.ZodType<ChartRow[]> = z
  .array(z.record(z.string(), z.union([z.string().max(10_000), z.number(), z.null()])))
  .max(maxChartRows);
