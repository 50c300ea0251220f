import type { Scales } from "./layers/scales.ts";
import type { Plot, PlotSeries } from "./plot.ts";
import type { Range } from "./domains.ts";
import type { Target } from "./readings.ts";

interface Pointer {
  readonly x: number;
  readonly y: number;
}

/** Finds the row, cell or point nearest to the pointer; null when nothing is near. */
export function findTarget(
  plot: Plot,
  visible: readonly PlotSeries[],
  range: Range,
  scalesOf: (side: "left" | "right") => Scales | null,
  at: Pointer,
): Target | null {
  const left = scalesOf("left") ?? scalesOf("right");
  if (!left) return null;
  if (plot.heat) return findCell(plot, left, at);
  if (visible.length > 0 && visible.every(({ mark }) => mark === "scatter")) return findPoint(plot, visible, range, scalesOf, at);
  return findRow(plot, range, left, at);
}

function findCell({ heat }: Plot, { x, y }: Scales, at: Pointer): Target | null {
  const cell = heat?.cells.find(
    ({ column, row }) => at.x >= x(column - 0.5) && at.x < x(column + 0.5) && at.y >= y(row - 0.5) && at.y < y(row + 0.5),
  );
  return cell ? { index: cell.index } : null;
}

function findPoint(
  { x: { values } }: Plot,
  visible: readonly PlotSeries[],
  range: Range,
  scalesOf: (side: "left" | "right") => Scales | null,
  at: Pointer,
): Target | null {
  let best: Target | null = null;
  let least = 32 ** 2;
  for (const series of visible) {
    const scales = scalesOf(series.side);
    if (!scales) continue;
    for (let index = range.start; index <= range.end; index += 1) {
      const value = series.values[index];
      if (value == null) continue;
      const distance = (scales.x(values[index] ?? 0) - at.x) ** 2 + (scales.y(value) - at.y) ** 2;
      if (distance < least) [least, best] = [distance, { index, series }];
    }
  }
  return best;
}

/** Binary search; x is sorted. */
function findRow({ type, x: { values, kind, step } }: Plot, { start, end }: Range, { x }: Scales, at: Pointer): Target {
  const shift = type === "histogram" && kind !== "category" ? step / 2 : 0;
  const pixel = (index: number): number => x((values[index] ?? 0) + shift);
  let [low, high] = [start, end];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (pixel(middle) <= at.x) low = middle;
    else high = middle;
  }
  return { index: Math.abs(pixel(low) - at.x) <= Math.abs(pixel(high) - at.x) ? low : high };
}
