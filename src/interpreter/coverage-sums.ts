import type { CoverageEvent } from "../protocol/coverage-event.ts";
import type { CoverageSeries } from "../protocol/coverage-series.ts";

/** An amount that contains coverage: its place, the times of the events, and what they contribute. */
export interface CoveredAmount {
  readonly at: number;
  readonly times: readonly number[];
  readonly size: number;
}

/** The sums of a series over one kind of calendar bucket: weeks, months, quarters or years. */
export interface CalendarSums {
  readonly total: readonly number[];
  readonly covered: readonly number[];
  readonly events: readonly CoveredAmount[];
}

const DAY = 86_400_000;
const WEEK = 7 * DAY;

/** Weeks may begin on any day. Kinds of which every bucket has at most one period are left out. */
export function toCalendarSums(series: CoverageSeries): CalendarSums[] {
  const month = (time: number, months: number): number => {
    const date = new Date(time);
    return Math.floor((date.getUTCFullYear() * 12 + date.getUTCMonth()) / months);
  };
  const kinds = [
    (time: number): number => Math.floor(time / DAY),
    ...[0, 1, 2, 3, 4, 5, 6].map((day) => (time: number) => Math.floor((time - day * DAY) / WEEK)),
    ...[1, 3, 12].map((months) => (time: number) => month(time, months)),
  ];
  return kinds.flatMap((toBucket) => {
    const sums = sumBy(series, toBucket);
    return sums.total.length < series.at.length ? [sums] : [];
  });
}

function sumBy({ at, change, coverage }: CoverageSeries, toBucket: (time: number) => number): CalendarSums {
  const total: number[] = [];
  const buckets: number[] = [];
  const places = at.map((time, place) => {
    const bucket = toBucket(time);
    if (buckets.at(-1) !== bucket) {
      buckets.push(bucket);
      total.push(0);
    }
    total[total.length - 1]! += change[place]!;
    return total.length - 1;
  });
  const covered = total.map(() => 0);
  const times = new Map<number, number[]>();
  for (const [place, size] of coverage) {
    const bucket = places[place]!;
    covered[bucket]! += size;
    times.set(bucket, [...(times.get(bucket) ?? []), at[place]!]);
  }
  const events = [...times].map(([bucket, list]) => ({ at: bucket, times: list, size: covered[bucket]! }));
  return { total, covered, events: events.filter(({ size }) => size !== 0) };
}

/** The total after each change, and before the first. */
export function toLevels({ first, change }: CoverageSeries): number[] {
  let level = first;
  return [first, ...change.map((one) => (level += one))];
}

/** When the event was, as the periods of its series are noted: milliseconds on the wall clock. */
export function toEventTime({ period }: CoverageEvent): number {
  return Date.parse(`${period.replace(/(?:Z|[+-]\d{2}:\d{2}(?::\d{2})?)$/, "").slice(0, 23)}Z`);
}
