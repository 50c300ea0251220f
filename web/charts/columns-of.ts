import type { ChartRow, ChartSpec } from "../../src/protocol/chart-spec.ts";

/** Columns of a chart's rows: drawn ones first, under the names they have in the chart. */
export function columnsOf(spec: ChartSpec, data: readonly ChartRow[]): { key: string; label: string }[] {
  const named = new Map<string, string>([[spec.xKey, spec.xAxis?.label ?? spec.xKey]]);
  if (spec.yKey) named.set(spec.yKey, spec.yAxis?.label ?? spec.yKey);
  if (spec.valueKey) named.set(spec.valueKey, spec.valueKey);
  for (const key of Object.values(spec.ohlc ?? {})) named.set(key, key);
  for (const { key, label, errorKey } of spec.series) {
    named.set(key, label ?? key);
    if (errorKey) named.set(errorKey, errorKey);
  }
  for (const row of data) for (const key of Object.keys(row)) if (!named.has(key)) named.set(key, key);
  return [...named].map(([key, label]) => ({ key, label }));
}
