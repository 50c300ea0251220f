import type { ChartRow, ChartSpec } from "../../src/protocol/chart-spec.ts";
import type { Mark, Plot, PlotSeries, PlotX, XKind } from "./plot.ts";
import { isTimeText, readTime } from "./read-time.ts";
import { toHeat } from "./to-heat.ts";

/** Converts a validated chart into its plot. */
export function toPlot(spec: ChartSpec, data: readonly ChartRow[]): Plot {
  const kind = kindOf(spec, data);
  const rows = kind === "category" ? data : [...data].sort((a, b) => placeOf(a[spec.xKey], kind) - placeOf(b[spec.xKey], kind));
  return {
    type: spec.type,
    spec,
    rows,
    x: toX(spec, rows, kind),
    series: spec.series.map((one, index) => toSeries(spec, rows, one, index)),
    candles: toCandles(spec, rows),
    heat: spec.type === "heatmap" ? toHeat(spec, rows) : null,
  };
}

function kindOf(spec: ChartSpec, rows: readonly ChartRow[]): XKind {
  if (spec.type === "heatmap") return "category";
  if (spec.xAxis?.type) return spec.xAxis.type;
  const cells = rows.map((row) => row[spec.xKey]);
  if (cells.every((cell) => typeof cell === "number")) return spec.type === "bar" ? "category" : "number";
  return cells.every((cell) => typeof cell === "string" && cell.length >= 10 && isTimeText(cell)) ? "time" : "category";
}

function placeOf(cell: ChartRow[string] | undefined, kind: XKind): number {
  return kind === "time" ? readTime(String(cell)) : Number(cell);
}

function toX(spec: ChartSpec, rows: readonly ChartRow[], kind: XKind): PlotX {
  const axis = spec.xAxis ?? {};
  if (kind === "category") {
    return { kind, axis, values: rows.map((_row, index) => index), labels: rows.map((row) => String(row[spec.xKey])), step: 1 };
  }
  const values = rows.map((row) => placeOf(row[spec.xKey], kind));
  return { kind, axis, values, labels: [], step: smallestStep(values) };
}

function smallestStep(sorted: readonly number[]): number {
  const steps = sorted.slice(1).map((value, index) => value - (sorted[index] ?? value));
  const real = steps.filter((step) => step > 0);
  return real.length === 0 ? 1 : real.reduce((least, step) => Math.min(least, step), Infinity);
}

function toSeries(spec: ChartSpec, rows: readonly ChartRow[], one: ChartSpec["series"][number], index: number): PlotSeries {
  const { key, label = key, errorKey, yAxis = "left" } = one;
  return {
    key,
    label,
    mark: markOf(spec, one.type),
    side: yAxis,
    colour: index,
    values: rows.map((row) => toNumber(row[key])),
    errors: errorKey === undefined ? null : rows.map((row) => toNumber(row[errorKey])),
  };
}

function markOf(spec: ChartSpec, own: Mark | undefined): Mark {
  if (spec.type === "composed") return own ?? "line";
  return spec.type === "bar" || spec.type === "area" || spec.type === "scatter" ? spec.type : spec.type === "histogram" ? "bar" : "line";
}

function toCandles({ ohlc }: ChartSpec, rows: readonly ChartRow[]): Plot["candles"] {
  if (!ohlc) return null;
  return rows.map((row) => {
    const [open, high, low, close] = [ohlc.openKey, ohlc.highKey, ohlc.lowKey, ohlc.closeKey].map((key) => toNumber(row[key]));
    return open == null || high == null || low == null || close == null ? null : [open, high, low, close];
  });
}

function toNumber(cell: ChartRow[string] | undefined): number | null {
  return typeof cell === "number" && Number.isFinite(cell) ? cell : null;
}
