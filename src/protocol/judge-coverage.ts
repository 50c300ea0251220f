import { fitsHours, MAX_CHANCE, regularFits, STEP_TOLERANCE, type Fit } from "./regular-points.ts";
import {
  countSteps,
  countUpTo,
  DAY,
  differences,
  distinct,
  isWeekday,
  logChoices,
  lowerMedian,
  maximum,
  modulo,
  spread,
} from "./time-steps.ts";

/**
 * The law of coverage: whether a drawn series shows enough of the points that it should have. `python/sluice/coverage.py` is the same law for the charts
 * and figures of cells. `corpus/coverage` holds both to the same verdicts; change them together. docs/python.md states the law.
 */

/** A series with a smaller share of its expected points is reported. */
export const MIN_COVERAGE = 0.6;
/** The same for fewer than ten points without a grid: months have 28 to 31 days. */
const OWN_STEP_TOLERANCE = 0.1;
/** Steps are regular if at least this share of them are the usual one. */
const REGULAR_SHARE = 0.8;
/** A point lies on a grid if it is this close to a place of it, as a share of the step there: clocks change by 4 % of a day. */
const PLACE_TOLERANCE = 0.05;
/** The same for fewer than five points, which are close to places by chance. */
const EXACT_PLACE_TOLERANCE = 0.00001;
const FEW = 5;
/** A series alone with one or two points is judged over its whole index, if that has at least as many places. */
const MIN_INDEX = 10;

/** One series as the law sees it. */
export interface PlottedSeries {
  /** The name of the series in reports. */
  readonly label: string;
  /** Its places on the time axis, nulls included: milliseconds since 1970 on the wall clock of the axis. */
  readonly places: readonly number[];
  /** Whether the series has a value at each place. */
  readonly hasValue: readonly boolean[];
  /** Whether only markers are drawn, without a line, bars or an area. */
  readonly markers: boolean;
}

/** What the law says about a series. */
export interface CoverageVerdict {
  readonly kind: "complete" | "low" | "unknown";
  readonly observed: number;
  readonly expected: number;
  /** The label of the series whose grid was used, or words for its own. */
  readonly against: string;
  /** The longest stretch without a point: its first and its last millisecond. */
  readonly gap: readonly [number, number];
}

const OWN_INDEX = "its own index";
const OWN_STEP = "its own step";
const COMPLETE: CoverageVerdict = { kind: "complete", observed: 0, expected: 0, against: "", gap: [0, 0] };
const UNKNOWN: CoverageVerdict = { ...COMPLETE, kind: "unknown" };

interface NamedGrid {
  readonly grid: readonly number[];
  readonly name: string;
}

/** Judges all series that share one time axis. Null for a series that is not judged: without a value, or markers beside others. */
export function judgeCoverage(series: readonly PlottedSeries[]): (CoverageVerdict | null)[] {
  const grids = series.map(({ places }) => distinct(places));
  const points = series.map(({ places, hasValue }) => distinct(places.filter((_, at) => hasValue[at])));
  const isAlone = points.filter((own) => own.length > 0).length === 1;
  const known = new Map(grids.map((grid, at) => [grid.join(), { grid, name: series[at]!.label }]));
  return series.map(({ markers }, at) => {
    const [own, ownIndex] = [points[at]!, grids[at]!];
    if (own.length === 0 || (markers && !isAlone)) return null;
    if (isAlone && own.length < 3 && ownIndex.length >= MIN_INDEX)
      return toSparseVerdict(own, ownIndex.length, OWN_INDEX, [ownIndex[0]!, ...own, ownIndex.at(-1)!]);
    const others = [...known].filter(([key]) => key !== ownIndex.join()).map(([, named]) => named);
    return judgeOne(own, ownIndex, others);
  });
}

function judgeOne(own: readonly number[], ownIndex: readonly number[], others: readonly NamedGrid[]): CoverageVerdict {
  const candidates = [...(ownIndex.length > own.length ? [{ grid: ownIndex, name: OWN_INDEX }] : []), ...others];
  let lowest: CoverageVerdict | null = null;
  let isJudged = false;
  for (const { grid, name } of candidates) {
    if (MIN_COVERAGE * grid.length < 0.5 * own.length) continue;
    const found = placesOn(own, grid);
    if (found === null || (found.length < own.length && judgeSteps(own).kind === "complete")) continue;
    isJudged = true;
    const { observed, expected, isRegular } = bestFit(grid, found);
    const isLow = observed < MIN_COVERAGE * expected;
    if (isRegular && !isLow) return COMPLETE;
    if (isLow && (lowest === null || observed * lowest.expected < lowest.observed * expected))
      lowest = { ...toSparseVerdict(own, expected, name), observed };
  }
  return isJudged ? (lowest ?? COMPLETE) : judgeSteps(own);
}

export function toSparseVerdict(own: readonly number[], expected: number, against: string, bounds = own): CoverageVerdict {
  const steps = differences(bounds);
  const widest = steps.length === 0 ? 0 : steps.indexOf(maximum(steps));
  const gap = [bounds[widest]!, bounds[Math.min(widest + 1, bounds.length - 1)]!] as const;
  return { kind: "low", observed: own.length, expected, against, gap };
}

/**
 * Returns the number of the grid's place for each point, or null if the points do not lie on the grid. They may all be shifted by the same time or the same
 * part of a step, like the bars of a group. Points outside of the grid's span are left out if at least half of the points are inside.
 */
function placesOn(own: readonly number[], grid: readonly number[]): number[] | null {
  if (grid.length < 2) return null;
  const steps = differences(grid);
  const tolerance = own.length >= FEW ? PLACE_TOLERANCE : EXACT_PLACE_TOLERANCE;
  const inside = own.filter((at) => at >= grid[0]! - tolerance * steps[0]! && at < grid.at(-1)! + steps.at(-1)!);
  if (inside.length < Math.max(2, 0.5 * own.length)) return null;
  const below = inside.map((at) => Math.max(countUpTo(grid, at) - 1, 0));
  const sizes = below.map((at) => steps[Math.min(at, steps.length - 1)]!);
  const parts = inside.map((at, index) => (at - grid[below[index]!]!) / sizes[index]!);
  if (parts.every((part) => Math.min(Math.abs(part), Math.abs(1 - part)) <= tolerance))
    return distinct(below.map((at, index) => Math.min(at + (parts[index]! > 0.5 ? 1 : 0), grid.length - 1)));
  const after = inside.map((at, index) => at - grid[below[index]!]!);
  if (spread(after) <= 2 * tolerance * lowerMedian(steps)) return distinct(below);
  const before = inside.map((_, index) => sizes[index]! - after[index]!);
  if (spread(before) <= 2 * tolerance * lowerMedian(steps)) return distinct(below.map((at) => Math.min(at + 1, grid.length - 1)));
  const circle = parts.map((part) => modulo(part, 1)).sort((a, b) => a - b);
  const widest = maximum([...differences(circle), circle[0]! + 1 - circle.at(-1)!]);
  return 1 - widest <= 2 * tolerance ? distinct(below) : null;
}

/** The coverage of the grid between the first and the last point, or of the best regular pattern that the points follow. */
function bestFit(grid: readonly number[], found: readonly number[]): Fit {
  const whole = { observed: found.length, expected: found.at(-1)! - found[0]! + 1, isRegular: false };
  if (whole.observed >= MIN_COVERAGE * whole.expected || found.length < 3) return whole;
  return regularFits(grid, found).reduce<Fit>(
    (best, fit) => (fit.observed * best.expected > best.observed * fit.expected ? fit : best),
    whole,
  );
}

/** The verdict on a series that has only its own steps. */
function judgeSteps(own: readonly number[]): CoverageVerdict {
  const count = own.length;
  if (count < 3) return COMPLETE;
  const skipsWeekends = own.every(isWeekday);
  const steps = differences(skipsWeekends ? own.map((at) => at - Math.floor((Math.floor(at / DAY) + 3) / 7) * 2 * DAY) : own);
  const usual = lowerMedian(steps);
  const tolerance = count >= 2 * FEW ? STEP_TOLERANCE : OWN_STEP_TOLERANCE;
  const singles = steps.filter((step) => Math.abs(step - usual) <= tolerance * usual).length;
  if (singles < REGULAR_SHARE * steps.length) return UNKNOWN;
  const expected = 1 + countSteps(steps, usual);
  if (count >= MIN_COVERAGE * expected || fitsHours(own, { usual, minShare: MIN_COVERAGE })) return COMPLETE;
  const others = steps.length - singles;
  const chance = others * Math.log(expected) + logChoices(steps.length, others) - logChoices(expected, count);
  return chance < Math.log(MAX_CHANCE) ? toSparseVerdict(own, expected, OWN_STEP) : UNKNOWN;
}
