import { texts } from "../texts.ts";
import type { Plot } from "./plot.ts";

/** Describes a chart in one sentence for screen readers. */
export function describeChart({ type, spec, series, rows }: Plot, title: string): string {
  const what = spec.valueKey ?? (series.length > 0 ? series.map(({ label }) => label) : texts.chart.candle).join(", ");
  return texts.chart.describe(texts.chart.types[type], title, rows.length, what);
}
