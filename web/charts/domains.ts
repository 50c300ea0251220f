import { niceTicks } from "./nice-ticks.ts";
import type { Plot, Side } from "./plot.ts";
import { readTime } from "./read-time.ts";
import type { Stacked } from "./stack.ts";

export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Ticks of a y axis for the rows in view. The first and last tick are the ends of the axis. */
export function yTicks(plot: Plot, stacked: readonly Stacked[], side: Side, { start, end }: Range): number[] {
  const span = new Span();
  for (const { series, from, to } of stacked) {
    if (series.side !== side) continue;
    for (let index = start; index <= end; index += 1) {
      const value = to[index];
      if (value == null) continue;
      const error = series.errors?.[index] ?? 0;
      span.add(value - error);
      span.add(value + error);
      if (series.mark === "bar" || series.mark === "area") span.add(from[index] ?? 0);
    }
  }
  if (side === "left") {
    for (const candle of (plot.candles ?? []).slice(start, end + 1)) for (const value of candle ?? []) span.add(value);
    for (const { y1, y2 } of plot.spec.referenceAreas ?? []) [y1, y2].forEach((value) => value !== undefined && span.add(value));
  }
  for (const { axis, value } of plot.spec.referenceLines ?? []) {
    if (axis === (side === "left" ? "y" : "yRight") && typeof value === "number") span.add(value);
  }
  // Whole numbers are probably counts, so no tick is fractional.
  return niceTicks(span.min, span.max, { smallest: span.isWhole ? 1 : 0 });
}

class Span {
  min = Infinity;
  max = -Infinity;
  isWhole = true;

  add(value: number): void {
    this.isWhole &&= Number.isInteger(value);
    this.min = Math.min(this.min, value);
    this.max = Math.max(this.max, value);
  }
}

/** Range of the x axis, with half a step more on either side where marks have a width. */
export function xDomain({ type, x, series, candles }: Plot, { start, end }: Range): [number, number] {
  const [first = 0, last = 1] = [x.values[start], x.values[end]];
  if (type === "histogram" && x.kind !== "category") return [first, last + x.step];
  if (x.kind === "category" || candles !== null || series.some(({ mark }) => mark === "bar"))
    return [first - x.step / 2, last + x.step / 2];
  if (first === last) return [first - x.step, last + x.step];
  const pad = type === "scatter" ? (last - first) * 0.02 : 0;
  return [first - pad, last + pad];
}

/** Position of a reference on x; null if no category has that name or the value is not a number. */
export function xPlace({ x }: Plot, value: string | number): number | null {
  if (x.kind === "category") {
    const index = x.labels.indexOf(String(value));
    return index < 0 ? null : index;
  }
  const place = x.kind === "time" && typeof value === "string" ? readTime(value) : Number(value);
  return Number.isFinite(place) ? place : null;
}
