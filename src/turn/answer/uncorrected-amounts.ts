import { toCalendarSums, toLevels } from "../../interpreter/coverage-sums.ts";
import type { Coverage } from "../../protocol/coverage-event.ts";
import type { CoverageSeries } from "../../protocol/coverage-series.ts";

/** A change over a range that contains coverage, and the same change without it. */
export interface UncorrectedAmount {
  readonly total: number;
  readonly stable: number;
  /** The total before and after the range; empty if they are not known. */
  readonly levels: readonly number[];
}

/** What a cell returned or a drawing shows. */
export interface Shown {
  /** From the first to the last time of each table, series and axis, in milliseconds on the wall clock. */
  readonly spans: readonly (readonly [from: number, to: number])[];
  /** In no order. */
  readonly numbers: readonly number[];
}

/**
 * Lists the changes that an answer must not state as flows: of each whole series, of each range that is shown, and of single periods, days, weeks,
 * months, quarters and years whose change is shown.
 */
export function listUncorrectedAmounts(coverage: readonly Coverage[], { spans, numbers }: Shown): UncorrectedAmount[] {
  const sorted = Float64Array.from(numbers, Math.abs).sort();
  return coverage.flatMap(({ series }) =>
    series.flatMap((one) => [...ofWhole(one), ...ofSpans(one, spans), ...ofBuckets(one).filter(({ total }) => isShown(sorted, total))]),
  );
}

function ofWhole(series: CoverageSeries): UncorrectedAmount[] {
  const { kind, total, stable, first } = series;
  const whole = toAmount(total, stable, kind === "level" ? [first, first + total] : []);
  // The first value of a flow is no change of coverage, but part of its sum.
  return kind === "flow" ? [...whole, ...toAmount(total + first, stable + first, [])] : whole;
}

function ofSpans(series: CoverageSeries, spans: Shown["spans"]): UncorrectedAmount[] {
  const { kind, at, change, coverage, places } = series;
  if (places !== undefined) return [];
  const levels = toLevels(series);
  const before = [0];
  for (const one of change) before.push(before.at(-1)! + one);
  const covered = change.map(() => 0);
  for (const [place, size] of coverage) covered[place] = size;
  return spans.flatMap(([start, end]) => {
    const from = at.findIndex((time) => time >= start);
    const to = at.findLastIndex((time) => time <= end);
    if (from < 0 || to < from) return [];
    // A table of changes counts its first row. From a table of totals, the first row is where the change begins.
    return [from, from + 1].flatMap((first) => {
      const total = before[to + 1]! - before[first]!;
      const size = covered.slice(first, to + 1).reduce((sum, one) => sum + one, 0);
      return first > to ? [] : toAmount(total, total - size, kind === "level" ? [levels[first]!, levels[to + 1]!] : []);
    });
  });
}

function ofBuckets(series: CoverageSeries): UncorrectedAmount[] {
  const { change, coverage, places } = series;
  const single = coverage.flatMap(([place, size]) => toAmount(change[place]!, change[place]! - size, []));
  if (places !== undefined) return single;
  const sums = toCalendarSums(series).flatMap(({ total, events }) =>
    events.flatMap(({ at, size }) => toAmount(total[at]!, total[at]! - size, [])),
  );
  return [...single, ...sums];
}

/** Nothing if coverage makes less than a thousandth of the change. */
function toAmount(total: number, stable: number, levels: readonly number[]): UncorrectedAmount[] {
  return Math.abs(total - stable) > 0.001 * Math.abs(total) && total !== 0 ? [{ total, stable, levels }] : [];
}

const UNITS = [1, 1e3, 1e6, 1e9];

/** Whether one of the numbers is the amount, perhaps rounded or in a larger unit. `sorted`: sizes without signs. */
function isShown(sorted: Float64Array, amount: number): boolean {
  return UNITS.some((unit) => {
    const size = Math.abs(amount) / unit;
    let [from, to] = [0, sorted.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (sorted[middle]! < size * (1 - 1e-4)) from = middle + 1;
      else to = middle;
    }
    return from < sorted.length && sorted[from]! <= size * (1 + 1e-4);
  });
}
