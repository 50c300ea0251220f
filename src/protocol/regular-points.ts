import {
  countSteps,
  countTrue,
  DAY,
  differences,
  distinct,
  isWeekday,
  logChoices,
  lowerMedian,
  maximum,
  minimum,
  modulo,
} from "./time-steps.ts";

/** Regular patterns that the points of a series may follow on a grid: steps, calendars, hours. For the law in judge-coverage.ts. */

/** Points are called regular only if random points of the same grid would look as regular with a smaller chance. */
export const MAX_CHANCE = 5e-4;
/** The same for calendar quarters and years that last from one end of the grid to the other, like four of them in twelve months. */
const MAX_CHANCE_THROUGHOUT = 5e-3;
/** At least this share of the points must fit a calendar pattern. */
const FITTING_SHARE = 0.9;
/** A step on a grid that differs by at most this share from the usual one counts as the same: third Fridays are 4 or 5 weeks apart. */
export const STEP_TOLERANCE = 0.25;
/** A longer grid of the usual step is not built. */
const MAX_OWN_GRID = 200_000;

/** How many points of a pattern a series has, between its first and its last point. */
export interface Fit {
  readonly observed: number;
  readonly expected: number;
  readonly isRegular: boolean;
}

/** All regular patterns that the points of a grid follow, apart from chance. `found`: the numbers of their places. */
export function regularFits(grid: readonly number[], found: readonly number[]): Fit[] {
  const usual = lowerMedian(differences(grid));
  const weekdays = grid.map(isWeekday);
  const order = countTrue(weekdays);
  const ranks = [found, found.map((at) => grid[at]! / usual)];
  if (found.every((at) => weekdays[at])) ranks.push(found.map((at) => order[at]!));
  const fits = [
    ...ranks.map((at) => fitSteps(at, found, grid.length)),
    ...calendarPatterns(grid, found).map((pattern) => fitPattern(pattern, found)),
    fitHours(grid, found, usual),
  ];
  return fits.filter((fit) => fit !== null);
}

/** The points follow a usual step of at least two places, with few points between and some missing. */
function fitSteps(at: readonly number[], found: readonly number[], places: number): Fit | null {
  const count = at.length;
  const steps = differences(at);
  const usual = lowerMedian(steps);
  if (usual < 1.5) return null;
  const low = (1 - STEP_TOLERANCE) * usual;
  const singles = steps.filter((step) => step >= low && step <= (1 + STEP_TOLERANCE) * usual);
  if (steps.filter((step) => step < low).length > (1 - FITTING_SHARE) * (count - 1)) return null;
  const expected = 1 + countSteps(steps, usual);
  const widths = Math.floor(maximum(singles) - minimum(singles) + 0.5) + 1;
  const others = count - 1 - singles.length;
  const chance =
    Math.log(5 * usual * Math.max(places - (found.at(-1)! - found[0]!), 1)) +
    singles.length * Math.log(widths) +
    others * Math.log(places) +
    logChoices(count - 1, others) -
    logChoices(places, count);
  return chance < Math.log(MAX_CHANCE) ? { observed: count, expected, isRegular: true } : null;
}

/** Places of a grid, and how many patterns like it there are. */
interface Pattern {
  readonly flags: readonly boolean[];
  readonly alternatives: number;
  readonly maxChanceThroughout?: number;
}

/** Nearly all points are at places of the pattern. */
function fitPattern({ flags, alternatives, maxChanceThroughout = MAX_CHANCE }: Pattern, found: readonly number[]): Fit | null {
  const [places, count] = [flags.length, found.length];
  const order = countTrue(flags);
  const total = order.at(-1)!;
  const hits = found.filter((at) => flags[at]).map((at) => order[at]!);
  if (hits.length < 3 || hits.length < FITTING_SHARE * count || 1.2 * total > places) return null;
  const expected = hits.at(-1)! - hits[0]! + 1;
  const chance =
    Math.log(alternatives * (total - expected + 1)) +
    logChoices(expected - 2, hits.length - 2) +
    (count - hits.length) * Math.log(places) +
    logChoices(count, hits.length) -
    logChoices(places, count);
  const limit = expected >= total - 1 ? maxChanceThroughout : MAX_CHANCE;
  return chance < Math.log(limit) ? { observed: hits.length, expected, isRegular: true } : null;
}

/** The first, the last and the same place in each day, week, month, quarter and year. */
function calendarPatterns(grid: readonly number[], found: readonly number[]): Pattern[] {
  const middle = found[Math.floor(found.length / 2)]!;
  const days = grid.map((at) => Math.floor(at / DAY));
  const weeks = days.map((day) => Math.floor((day + 3) / 7));
  const sameOffset = (offsets: readonly number[], also: readonly boolean[] = []): Pattern =>
    alike(offsets.map((offset, at) => offset === offsets[middle] && also[at] !== false));
  const ofClock = [
    { period: days, offsets: grid.map((at, index) => at - days[index]! * DAY) },
    { period: weeks, offsets: grid.map((at, index) => at - (weeks[index]! * 7 - 3) * DAY) },
  ].flatMap(({ period, offsets }): Pattern[] => [
    { flags: period.map((_, at) => isFirst(period, at)), alternatives: 2 },
    { flags: period.map((_, at) => isLast(period, at)), alternatives: 2 },
    sameOffset(offsets),
  ]);
  const dates = days.map((day) => new Date(day * DAY));
  const months = dates.map((date) => (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth());
  const offsets = grid.map((at, index) => at - (days[index]! - dates[index]!.getUTCDate() + 1) * DAY);
  const ofMonths = [1, 3, 12].flatMap((length): Pattern[] => {
    const phase = modulo(months[middle]!, length);
    const here = months.map((month) => modulo(month, length) === phase);
    const toPattern = (isEdge: typeof isFirst, usualPhase: number): Pattern => {
      const flags = here.map((isHere, at) => isHere && isEdge(months, at));
      const isUsual = length > 1 && phase === usualPhase;
      return isUsual ? { flags, alternatives: 1, maxChanceThroughout: MAX_CHANCE_THROUGHOUT } : { flags, alternatives: 2 * length };
    };
    return [toPattern(isFirst, 0), toPattern(isLast, length - 1), sameOffset(offsets, here)];
  });
  return [...ofClock, ...ofMonths];
}

function alike(flags: readonly boolean[]): Pattern {
  return { flags, alternatives: flags.length / Math.max(flags.filter(Boolean).length, 1) };
}

/** The points keep to some hours of the day, or to weekdays. */
function fitHours(grid: readonly number[], found: readonly number[], usual: number): Fit | null {
  if (usual > DAY) return null;
  const times = grid.map((at) => modulo(at, DAY));
  const used = distinct(found.map((at) => times[at]!));
  const pauses = differences([...used, used[0]! + DAY]);
  const longest = pauses.indexOf(maximum(pauses));
  const start = used[(longest + 1) % used.length]!;
  const onWeekdays = found.every((at) => isWeekday(grid[at]!));
  const slack = 0.001 * usual; // for binary fractions
  const isOpen = (time: number): boolean => modulo(time - start + slack, DAY) <= DAY - pauses[longest]! + 2 * slack;
  const flags = times.map((time, at) => isOpen(time) && (!onWeekdays || isWeekday(grid[at]!)));
  const [places, count, total] = [grid.length, found.length, flags.filter(Boolean).length];
  if (1.2 * total > places) return null;
  const slots = Math.floor(DAY / usual + 0.5);
  const chance = Math.log(2 * slots * slots) + logChoices(total, count) - logChoices(places, count);
  const expected = flags.slice(found[0], found.at(-1)! + 1).filter(Boolean).length;
  return chance < Math.log(MAX_CHANCE) ? { observed: count, expected, isRegular: true } : null;
}

/** Whether points without a grid fill the hours and weekdays that they use. `usual`: their usual step. */
export function fitsHours(own: readonly number[], { usual, minShare }: { usual: number; minShare: number }): boolean {
  const first = own[0]!;
  const places = Math.floor((own.at(-1)! - first) / usual + 0.5) + 1;
  if (usual > DAY / 3 || places > MAX_OWN_GRID) return false;
  const grid = Array.from({ length: places }, (_, at) => first + usual * at);
  const found = distinct(own.map((at) => Math.floor((at - first) / usual + 0.5)));
  const fit = fitHours(grid, found, usual);
  return fit !== null && fit.observed >= minShare * fit.expected;
}

function isFirst(periods: readonly number[], at: number): boolean {
  return at === 0 || periods[at] !== periods[at - 1];
}

function isLast(periods: readonly number[], at: number): boolean {
  return at === periods.length - 1 || periods[at] !== periods[at + 1];
}
