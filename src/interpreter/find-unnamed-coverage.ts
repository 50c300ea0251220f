import { describeCoverageEvent, type Coverage, type CoverageEvent } from "../protocol/coverage-event.ts";
import type { CoverageSeries } from "../protocol/coverage-series.ts";
import { toCalendarSums, toEventTime, toLevels, type CoveredAmount } from "./coverage-sums.ts";

/** A figure or chart as this check sees it. */
export interface Drawing {
  /** Every text that a reader sees: titles, labels, legend, annotations. */
  readonly texts: readonly string[];
  readonly series: readonly DrawnSeries[];
}

export interface DrawnSeries {
  readonly label: string;
  readonly values: readonly (number | null)[];
}

/** A drawn series that contains changes of coverage which no text names. */
export interface UnnamedCoverage {
  readonly label: string;
  /** Each event as a part of a sentence. */
  readonly events: readonly string[];
  readonly entities: readonly string[];
}

/**
 * Finds series that draw `coverage_change`, or `total_change` across an event, in a drawing whose texts name neither coverage nor the entities. What was
 * drawn is known by its numbers: sign, units of a thousand, million or billion, rounding, a part of the periods, sums over weeks, months, quarters and
 * years, and running sums make no difference.
 */
export function findUnnamedCoverage({ texts, series }: Drawing, derived: readonly Coverage[]): UnnamedCoverage[] {
  const shown = texts.join("\n").toLowerCase();
  if (derived.length === 0 || shown.includes("coverage")) return [];
  return series.flatMap((drawn) => {
    const found = new Map<string, CoverageEvent | null>();
    for (const { events, series: known } of derived)
      for (const one of known)
        for (const at of findDrawnEvents(drawn.values, one)) {
          const here = events.filter((event) => event.series === one.series && toEventTime(event) === at);
          for (const event of here) found.set(describeCoverageEvent(event), event);
          if (here.length === 0) found.set(`it changed on ${new Date(at).toISOString().slice(0, 10)}`, null);
        }
    const unnamed = [...found].filter(([, event]) => event === null || !shown.includes(event.entity.toLowerCase()));
    const entities = [...new Set(unnamed.flatMap(([, event]) => event?.entity ?? []))];
    return unnamed.length === 0 ? [] : [{ label: drawn.label, events: unnamed.map(([text]) => text), entities }];
  });
}

/** More events of one series are not looked for. */
const MAX_EVENTS = 100;
const SCALES = [1, 1e-3, 1e-6, 1e-9].flatMap((scale) => [scale, -scale]);

/** The times of the events whose coverage the values draw, alone or as a part of the total change. */
function findDrawnEvents(values: readonly (number | null)[], series: CoverageSeries): Set<number> {
  const found = new Set<number>();
  const add = (times: Iterable<number>): void => {
    for (const time of times) found.add(time);
  };
  const known = values.filter((value): value is number => value !== null && Number.isFinite(value));
  if (known.length === 0 || known.length > 2 * series.periods + 10) return found;
  const rounding = findRounding(known);
  const sums: number[] = [];
  for (const sequence of listSequences(series)) {
    add(matchEvents(known, sequence, rounding));
    add(matchEvents(withoutZeros(known), withoutZeroAmounts(sequence), rounding));
    const differences = known.slice(1).map((value, at) => value - known[at]!);
    sums.push(...matchEvents(differences, sequence, 2 * rounding));
  }
  // The total itself has the differences of a running sum, but it is no change.
  if (sums.length > 0 && !isLevel(known, series, rounding)) add(sums);
  return found;
}

/** Amounts in the order of time, and which of them contain coverage. */
interface Sequence {
  readonly amounts: readonly number[];
  readonly events: readonly CoveredAmount[];
}

/** The changes of the series and its coverage, by period and by week, month, quarter and year. */
function listSequences(series: CoverageSeries): Sequence[] {
  const { at: times, change, coverage, places } = series;
  const dense = change.map(() => 0);
  for (const [at, size] of coverage) dense[at] = size;
  const events = coverage.filter(([, size]) => size !== 0).map(([at, size]) => ({ at, times: [times[at]!], size }));
  const byPeriod = [
    { amounts: change, events },
    { amounts: dense, events },
  ];
  if (places !== undefined) return byPeriod;
  const byCalendar = toCalendarSums(series).flatMap(({ total, covered, events: inBuckets }) => [
    { amounts: total, events: inBuckets },
    { amounts: covered, events: inBuckets },
  ]);
  return [...byPeriod, ...byCalendar];
}

function withoutZeros(numbers: readonly number[]): number[] {
  return numbers.filter((number) => number !== 0);
}

function withoutZeroAmounts({ amounts, events }: Sequence): Sequence {
  const placesBefore = amounts.map(() => 0);
  let count = 0;
  for (const [at, amount] of amounts.entries()) {
    placesBefore[at] = count;
    if (amount !== 0) count += 1;
  }
  const kept = events.filter(({ at }) => amounts[at] !== 0).map((event) => ({ ...event, at: placesBefore[event.at]! }));
  return { amounts: withoutZeros(amounts), events: kept };
}

/** The times of the events whose amount is drawn, exactly or rounded, next to the amounts before and after it. */
function* matchEvents(drawn: readonly number[], { amounts, events }: Sequence, rounding: number): Generator<number> {
  const order = drawn.map((_, place) => place).sort((a, b) => drawn[a]! - drawn[b]!);
  for (const { at, times, size } of events.slice(0, MAX_EVENTS)) {
    const isDrawn = SCALES.some((scale) => {
      const amount = amounts[at]! * scale;
      const exact = Math.abs(amount) * 1e-6;
      return [exact, Math.max(exact, rounding)].some((tolerance) => {
        // The amount without the coverage must be another number, and rounding must leave three digits.
        if (tolerance > 0.005 * Math.abs(amount) || 2 * tolerance >= Math.abs(size * scale)) return false;
        const isNeighbourSame = (place: number, step: number): boolean | null => {
          const [here, there] = [drawn[place + step], amounts[at + step]];
          if (here === undefined || there === undefined) return null;
          return Math.abs(here - there * scale) <= Math.max(Math.abs(there * scale) * 1e-6, tolerance);
        };
        return placesNear(drawn, order, { amount, tolerance }).some((place) => {
          const compared = NEIGHBOURS.map((step) => isNeighbourSame(place, step)).filter((one) => one !== null);
          const same = compared.filter(Boolean).length;
          return same >= Math.min(2, compared.length) && 2 * same >= compared.length;
        });
      });
    });
    if (isDrawn) yield* times;
  }
}

const NEIGHBOURS = [-3, -2, -1, 1, 2, 3];

/** The places of the numbers within the tolerance. `order`: all places, by the size of their numbers. */
function placesNear(
  numbers: readonly number[],
  order: readonly number[],
  { amount, tolerance }: { amount: number; tolerance: number },
): number[] {
  let [from, to] = [0, order.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (numbers[order[middle]!]! < amount - tolerance) from = middle + 1;
    else to = middle;
  }
  const found: number[] = [];
  for (; from < order.length && numbers[order[from]!]! <= amount + tolerance && found.length < 20; from += 1) found.push(order[from]!);
  return found;
}

const UNITS = Array.from({ length: 10 }, (_, digits) => 10 ** digits);

/** Half of the last digit that all numbers are rounded to; 0 if they are not rounded. */
function findRounding(numbers: readonly number[]): number {
  const isWhole = (value: number): boolean => Math.abs(value - Math.round(value)) < Math.max(1e-6, Math.abs(value) * 1e-12);
  const unit = UNITS.find((one) => numbers.every((value) => isWhole(value * one)));
  return unit === undefined ? 0 : 0.50001 / unit;
}

/** Whether the values are the total itself: most of them are one of its levels. */
function isLevel(values: readonly number[], series: CoverageSeries, rounding: number): boolean {
  if (series.kind === "flow") return false;
  const levels = toLevels(series);
  const order = levels.map((_, place) => place).sort((a, b) => levels[a]! - levels[b]!);
  return SCALES.some((scale) => {
    const isNear = (value: number): boolean => {
      const tolerance = Math.max(Math.abs(value) * 1e-6, rounding) / Math.abs(scale);
      return placesNear(levels, order, { amount: value / scale, tolerance }).length > 0;
    };
    return values.filter(isNear).length >= 0.8 * values.length;
  });
}
