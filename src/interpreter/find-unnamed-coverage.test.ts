import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Coverage } from "../protocol/coverage-event.ts";
import { findUnnamedCoverage } from "./find-unnamed-coverage.ts";

const DAY = 86_400_000;
const START = Date.UTC(2025, 0, 1);

/** What `derive_change_series` notes about daily flows of one venue, and another that is first listed on day `listed` with `size`. */
function derive(flows: readonly number[], listed: number, size: number, first = 250_000): Coverage {
  const at = flows.map((_, day) => START + (day + 1) * DAY);
  const change = flows.map((flow, day) => (day === listed ? flow + size : flow));
  const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
  const period = new Date(at[listed]!).toISOString().replace("Z", "+00:00");
  return {
    events: [{ period, entity: "Harbour", kind: "first_listed", value: size, series: "s" }],
    omitted: 0,
    series: [
      {
        series: "s",
        kind: "level",
        periods: flows.length,
        total: sum(change),
        stable: sum(flows),
        first,
        at,
        change,
        coverage: [[listed, size]],
      },
    ],
  };
}

const flows = fc.array(fc.double({ min: -500, max: 500, noNaN: true }), { minLength: 60, maxLength: 400 });
const panel = flows.chain((list) =>
  fc.record({
    list: fc.constant(list),
    listed: fc.integer({ min: 35, max: list.length - 10 }),
    size: fc.double({ min: 3e4, max: 9e4, noNaN: true }),
  }),
);
const scales = fc.constantFrom(1, -1, 1e-3, 1e-6, -1e-3);
const isFound = (values: readonly (number | null)[], derived: Coverage, texts: readonly string[] = ["Net flow"]): boolean =>
  findUnnamedCoverage({ texts, series: [{ label: "Net flow", values }] }, [derived]).length > 0;
const runningSum = (values: readonly number[]): number[] => values.reduce<number[]>((sums, one) => [...sums, (sums.at(-1) ?? 0) + one], []);
const byMonth = (values: readonly number[]): number[] => {
  const sums = new Map<string, number>();
  for (const [day, value] of values.entries()) {
    const month = new Date(START + (day + 1) * DAY).toISOString().slice(0, 7);
    sums.set(month, (sums.get(month) ?? 0) + value);
  }
  return [...sums.values()];
};
const round = (values: readonly number[], digits: number): number[] => values.map((value) => Number(value.toFixed(digits)));

describe("a drawn series", () => {
  test.each<[string, (change: readonly number[], coverage: readonly number[], listed: number) => (number | null)[]]>([
    ["the total change", (change) => [null, ...change]],
    ["the total change, rounded", (change) => round(change, 0)],
    ["a part of the total change", (change, _, listed) => change.slice(listed - 5, listed + 4)],
    ["its running sum", (change) => runningSum(change)],
    ["its running sum over a part", (change, _, listed) => runningSum(change.slice(listed - 5))],
    ["its sums by month", (change) => byMonth(change)],
    ["the coverage", (_, coverage) => [null, ...coverage]],
    ["the coverage where there is any", (_, coverage) => coverage.map((one) => (one === 0 ? null : one))],
    ["the coverage of the month", (_, coverage) => byMonth(coverage)],
  ])("with %s is found at every scale", (_, draw) => {
    fc.assert(
      fc.property(panel, scales, ({ list, listed, size }, scale) => {
        const derived = derive(list, listed, size);
        const [{ change }] = derived.series as [Coverage["series"][0]];
        const values = draw(
          change,
          change.map((__, day) => (day === listed ? size : 0)),
          listed,
        ).map((value) => (value === null ? null : value * scale));
        expect(isFound(values, derived)).toBe(true);
        expect(isFound(values, derived, ["Net flow", "Change of coverage"])).toBe(false);
        expect(isFound(values, derived, ["Inflow (harbour was first listed in March)"])).toBe(false);
      }),
    );
  });

  test.each<[string, (flow: readonly number[], change: readonly number[], listed: number) => number[]]>([
    ["the flow", (flow) => [...flow]],
    ["its running sum", (flow) => runningSum(flow)],
    ["its sums by month", (flow) => byMonth(flow)],
    ["the total", (_, change) => runningSum([250_000, ...change])],
    ["the last total of each week", (_, change) => runningSum([250_000, ...change]).filter((__, day) => day % 7 === 6)],
    ["the total change before the event", (_, change, listed) => change.slice(0, listed)],
    ["the level of the venue that was listed", (flow, _, listed) => flow.slice(listed).map((one) => 35_000 + one)],
    ["nothing but zeros", (flow) => flow.map(() => 0)],
    ["the number of venues", (flow, _, listed) => flow.map((__, day) => (day < listed ? 1 : 2))],
  ])("with %s is accepted at every scale", (_, draw) => {
    fc.assert(
      fc.property(panel, scales, ({ list, listed, size }, scale) => {
        const derived = derive(list, listed, size);
        expect(
          isFound(
            draw(list, derived.series[0]!.change, listed).map((value) => value * scale),
            derived,
          ),
        ).toBe(false);
      }),
    );
  });

  test("names what it hides", () => {
    const derived = derive(
      Array.from({ length: 90 }, (_, day) => ((day * 37) % 101) - 50),
      60,
      35_000,
    );
    const series = [{ label: "Inflow", values: derived.series[0]!.change }];
    expect(findUnnamedCoverage({ texts: ["Inflow"], series }, [derived])).toEqual([
      { label: "Inflow", events: ["Harbour was first listed on 2025-03-03 with 35,000"], entities: ["Harbour"] },
    ]);
  });

  test("of integers is found among small and equal numbers", () => {
    const derived = derive([0, 0, 1, 0, -1, 0, 0, 2, 0, 0], 4, 40);
    expect(isFound(derived.series[0]!.change, derived)).toBe(true);
    expect(isFound([0, 0, 1, 0, -1, 0, 0, 2, 0, 0], derived)).toBe(false);
  });

  test("with a single change is found", () => {
    expect(isFound([34_996], derive([-4], 0, 35_000))).toBe(true);
    expect(isFound([-4], derive([-4], 0, 35_000))).toBe(false);
  });

  test("is found by the periods around events of a series that is too long", () => {
    const flow = Array.from({ length: 40 }, (_, day) => ((day * 37) % 101) - 50.5);
    const derived = derive(flow, 20, 35_000);
    const [series] = derived.series as [Coverage["series"][0]];
    const part = (numbers: readonly number[]): number[] => numbers.slice(18, 23);
    const thinned = {
      ...series,
      places: [18, 19, 20, 21, 22],
      at: part(series.at),
      change: part(series.change),
      coverage: [[2, 35_000]] as [number, number][],
    };
    expect(isFound(series.change, { ...derived, series: [thinned] })).toBe(true);
    expect(isFound(flow, { ...derived, series: [thinned] })).toBe(false);
  });
});
