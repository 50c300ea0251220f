import { describe, expect, test } from "vitest";
import type { Coverage } from "../../protocol/coverage-event.ts";
import { findUncorrectedNumbers } from "./find-uncorrected-numbers.ts";
import { listShown } from "./list-shown.ts";
import { listUncorrectedAmounts, type Shown } from "./uncorrected-amounts.ts";

const DAY = 86_400_000;
const dayOf = (text: string): number => Date.parse(`${text}T00:00:00Z`);

/** 90 days from 2025-01-01; Harbour is first listed on `day` with `size`, everything else changes by `flow` each day. */
function derive({ size = 35_000, day = "2025-02-10", flow = -4 / 89, first = 250_000 } = {}): Coverage {
  const at = Array.from({ length: 89 }, (_, place) => dayOf("2025-01-02") + place * DAY);
  const listed = at.indexOf(dayOf(day));
  const change = at.map((_, place) => (place === listed ? flow + size : flow));
  return {
    events: [{ period: `${day}T00:00:00+00:00`, entity: "Harbour", kind: "first_listed", value: size, series: "s" }],
    omitted: 0,
    series: [
      {
        series: "s",
        kind: "level",
        periods: 89,
        total: 89 * flow + size,
        stable: 89 * flow,
        first,
        at,
        change,
        coverage: [[listed, size]],
      },
    ],
  };
}

const nothing: Shown = { spans: [], numbers: [] };
const flagged = (answer: string, coverage: Coverage = derive(), shown: Shown = nothing): string[] =>
  findUncorrectedNumbers(answer, { amounts: listUncorrectedAmounts([coverage], shown), events: coverage.events }).map(({ text }) => text);

describe("the uncorrected change of the whole series", () => {
  test.each([
    ["Inflow was 34,996.", "34,996"],
    ["Inflow was **34,996 BTC** in three months.", "34,996"],
    ["Inflow was $34,996 since January.", "34,996"],
    ["Inflow was 34 996 BTC.", "34 996"],
    ["Inflow was 34'996.", "34'996"],
    ["Inflow was 34.996 BTC.", "34.996"],
    ["About 35.0k BTC flowed in.", "35.0k"],
    ["About 35k flowed in.", "35k"],
    ["Net inflow: ~35,000 BTC.", "35,000"],
    ["It grew by 0.035 million.", "0.035 million"],
    ["The balance changed by +34996.0 units.", "34996.0"],
    ["The outflow of the counterparties was −34,996.", "34,996"],
    ["34,996 BTC came in. Harbour was first listed with 35,000.", "34,996"],
    ["| measure | BTC |\n|---|---|\n| Net flow | 34,996 |", "34,996"],
  ])("is found in %j", (answer, text) => {
    expect(flagged(answer)).toEqual([text]);
  });

  test.each([
    "Harbour was first listed on 2025-02-10 with 35,000, which is not an inflow.",
    "There was no inflow. Harbour's 35,000 are coverage.",
    "The total rose by 34,996, but only -4 of it is a flow.",
    "The total rose by 34,996; the flow without Harbour was -4.00.",
    "The change is 34.996 %.",
    "The total went from 250,000 to 284,996.",
    "35,000 rows were read.",
    "It was 34,100.",
    "Nothing is known.",
    "See [the data](https://example.com/34996) and `34996`.",
  ])("is not found in %j", (answer) => {
    expect(flagged(answer)).toEqual([]);
  });

  test("is not mistaken for a year, a date or a count", () => {
    const year = derive({ size: 2029, flow: -4 / 89 });
    for (const answer of [
      "In 2025 nothing moved.",
      "The flow as of 2025 is small.",
      "2025 venues report.",
      "The net flow of 2025 days.",
      "From 2024 to 2025 it fell.",
    ])
      expect([answer, flagged(answer, year)]).toEqual([answer, []]);
    expect(flagged("Inflow was 2025 BTC.", year)).toEqual(["2025"]);
    expect(flagged("Inflow was 2,025.", year)).toEqual(["2,025"]);
    const count = derive({ size: 44, flow: -2 / 89 });
    for (const answer of ["42 venues report.", "There are 42 of them.", "Net flow over 42 days: none.", "Figure 42 shows the flow."])
      expect([answer, flagged(answer, count)]).toEqual([answer, []]);
    expect(flagged("The net inflow was 42.", count)).toEqual(["42"]);
  });

  test("is not mistaken for a total that is as close", () => {
    const fromNothing = derive({ first: 4 });
    expect(flagged("The total went from 4 to 35,000.", fromNothing)).toEqual([]);
    expect(flagged("The inflow was 34,996.", fromNothing)).toEqual(["34,996"]);
  });

  test("is no finding if coverage is a negligible part of it", () => {
    expect(flagged("Inflow was 89,001.", derive({ flow: 1000, size: 1 }))).toEqual([]);
  });
});

describe("the uncorrected change of a range", () => {
  const coverage = derive({ flow: 10 });
  const days = (from: string, to: string): string[] => {
    const count = (dayOf(to) - dayOf(from)) / DAY + 1;
    return Array.from({ length: count }, (_, day) => new Date(dayOf(from) + day * DAY).toISOString().slice(0, 10));
  };
  const rows = (from: string, to: string): unknown[] => days(from, to).map((day) => ({ day, note: "x" }));
  const answer = "Inflow was 35,110.";

  test("is found if a result has its rows, also as rows of the total", () => {
    expect(flagged(answer, coverage, nothing)).toEqual([]);
    expect(flagged(answer, coverage, listShown([{ a: rows("2025-02-05", "2025-02-15") }], []))).toEqual(["35,110"]);
    expect(flagged(answer, coverage, listShown([rows("2025-02-04", "2025-02-15")], []))).toEqual(["35,110"]);
    expect(flagged(answer, coverage, listShown([rows("2025-02-12", "2025-02-22")], []))).toEqual([]);
  });

  test("is found if a result or a chart has months and quarters of it", () => {
    expect(flagged("In February, 35,280 came in.", coverage, listShown([[{ month: "2025-02" }]], []))).toEqual(["35,280"]);
    expect(flagged("In February, 35,280 came in.", coverage, listShown([{ flow: 35_280 }], []))).toEqual(["35,280"]);
    expect(flagged("In February, 35,280 came in.", coverage, listShown([{ flow: 0.035_28 }], []))).toEqual(["35,280"]);
    expect(flagged("In February, 35,280 came in.", coverage, listShown([{ flow: 280 }], []))).toEqual([]);
    expect(flagged("On that day, 35,010 came in.", coverage, listShown([[35_010]], []))).toEqual(["35,010"]);
  });

  test("is found if a figure draws it", () => {
    const axes = (x: object, places: readonly number[]): unknown => ({
      schemaVersion: 2,
      axes: [{ x, y: { scale: "linear" }, series: [{ type: "bar", x: places, y: places.map(() => 1) }], unread: [] }],
    });
    const draw = (figure: unknown): Shown => listShown([], [{ kind: "image", figure } as unknown as Parameters<typeof listShown>[1][0]]);
    const shown = days("2025-02-05", "2025-02-15");
    const byTime = draw(
      axes(
        { scale: "time", zone: "Europe/Berlin" },
        shown.map((day) => dayOf(day) - 3_600_000),
      ),
    );
    expect(flagged(answer, coverage, byTime)).toEqual(["35,110"]);
    const tickLabels = shown.map((text, at) => ({ at, text }));
    expect(
      flagged(
        answer,
        coverage,
        draw(
          axes(
            { scale: "category", tickLabels },
            shown.map((_, at) => at),
          ),
        ),
      ),
    ).toEqual(["35,110"]);
  });
});
