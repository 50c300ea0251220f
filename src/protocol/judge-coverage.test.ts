import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { checkChartCoverage } from "./check-chart-coverage.ts";
import type { ChartRow, ChartSpec } from "./chart-spec.ts";
import { judgeCoverage, type PlottedSeries } from "./judge-coverage.ts";

/** The same cases as python/tests/test_coverage_corpus.py. */
const root = new URL("../../corpus/", import.meta.url);
const DAY = 86_400_000;
const HOUR = DAY / 24;

interface Case {
  readonly title: string;
  readonly calendar: string;
  readonly places: number;
  readonly series: readonly {
    readonly label: string;
    /** Hexadecimal bits, the first place first. Default: all places. */
    readonly at?: string;
    /** Instead of places of the calendar: seconds after its start. */
    readonly seconds?: readonly number[];
    readonly hasNulls?: boolean;
    readonly markers?: boolean;
    readonly shiftSeconds?: number;
  }[];
  readonly verdicts: readonly unknown[];
}

test("every case of the corpus has the same verdicts as in Python", async () => {
  const cases = [...(await read<Case>("coverage/random.json")), ...(await read<Case>("coverage/sentences.json"))];
  expect(cases.length).toBeGreaterThan(400);
  for (const one of cases) {
    const found = judgeCoverage(readSeries(one)).map(
      (verdict) => verdict && (verdict.kind === "low" ? ["low", verdict.observed, verdict.expected, verdict.against] : verdict.kind),
    );
    expect(found, `${one.title}, ${one.calendar}`).toEqual(one.verdicts);
  }
});

function readSeries({ calendar, places, series }: Case): PlottedSeries[] {
  const index = toTimes(calendar, places);
  return series.map(({ label, at, seconds, hasNulls = false, markers = false, shiftSeconds = 0 }) => {
    if (seconds !== undefined) {
      const times = seconds.map((second) => index[0]! + second * 1000);
      return { label, places: times, hasValue: times.map(() => true), markers };
    }
    const bits = at === undefined ? index.map(() => true) : [...at].flatMap(toBits).slice(0, places);
    const moved = index.map((time) => time + shiftSeconds * 1000);
    const kept = moved.filter((_, place) => hasNulls || bits[place]);
    return { label, places: kept, hasValue: hasNulls ? bits : kept.map(() => true), markers };
  });
}

function toBits(digit: string): boolean[] {
  const bits = Number.parseInt(digit, 16);
  return [8, 4, 2, 1].map((bit) => (bits & bit) > 0);
}

/** The places of a calendar from 2024-01-01 on, a Monday. */
function toTimes(calendar: string, places: number): number[] {
  const start = Date.UTC(2024, 0, 1);
  const toTime: Record<string, (place: number) => number> = {
    daily: (place) => start + place * DAY,
    hourly: (place) => start + place * HOUR,
    weekly: (place) => start + (6 + 7 * place) * DAY,
    weekday: (place) => start + (Math.floor(place / 5) * 7 + (place % 5)) * DAY,
    monthly: (place) => Date.UTC(2024, place, 1),
  };
  return Array.from({ length: places }, (_, place) => toTime[calendar]!(place));
}

interface ChartCase {
  readonly title: string;
  readonly spec: ChartSpec;
  /** Cells; `{from, days}`: the days from a date on; `{at}`: a number in these rows or in all, otherwise null. */
  readonly columns: Record<
    string,
    ChartRow[string][] | { readonly from: string; readonly days: number } | { readonly at: number[] | "all" }
  >;
  readonly cadence?: Record<string, string | null>;
  readonly low: readonly unknown[];
  readonly unknown: readonly string[];
}

test("every chart of the corpus has the same sparse series as in Python", async () => {
  for (const { title, spec, columns, cadence, low, unknown } of await read<ChartCase>("coverage-charts.json")) {
    const found = checkChartCoverage(spec, readRows(columns), cadence);
    const listed = found.low.map((one) => [
      ...[one.label, one.observed, one.expected, one.against, one.largestGap],
      ...[one.gapStart, one.gapEnd],
    ]);
    expect(listed, title).toEqual(low);
    expect(found.low.every(({ coverage, observed, expected }) => coverage === observed / expected)).toBe(true);
    expect(
      found.unknown.map(({ label }) => label),
      title,
    ).toEqual(unknown);
  }
});

function readRows(columns: ChartCase["columns"]): ChartRow[] {
  const sizes = Object.values(columns).map((column) => (Array.isArray(column) ? column.length : "days" in column ? column.days : 0));
  return Array.from({ length: Math.max(...sizes) }, (_, row) =>
    Object.fromEntries(
      Object.entries(columns).map(([name, column]) => {
        if (Array.isArray(column)) return [name, column[row] ?? null];
        if ("from" in column) return [name, new Date(Date.parse(column.from) + row * DAY).toISOString().slice(0, 10)];
        return [name, column.at === "all" || column.at.includes(row) ? row : null];
      }),
    ),
  );
}

async function read<Entry>(name: string): Promise<Entry[]> {
  return JSON.parse(await readFile(new URL(name, root), "utf8")) as Entry[];
}
