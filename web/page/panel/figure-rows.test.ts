import { describe, expect, test } from "vitest";
import type { FigureAxis, FigureSeries } from "../../../src/protocol/figure.ts";
import { readFigure } from "../../../src/protocol/read-figure.ts";
import { toNumberTables } from "./figure-rows.ts";

function show(series: FigureSeries, x: Partial<FigureAxis> = {}, y: Partial<FigureAxis> = {}): unknown[][] {
  const axes = { x: { scale: "linear", label: "day", ...x }, y: { scale: "linear", label: "price", ...y }, series: [series], unread: [] };
  return showStored({ schemaVersion: 2, axes: [axes] });
}

function showStored(figure: unknown): unknown[][] {
  const [table] = toNumberTables({ kind: "image", figure: readFigure(figure) });
  return [table?.columns.map(({ label }) => label) ?? [], ...(table?.rows.map((row) => table.columns.map(({ key }) => row[key])) ?? [])];
}

test("a line has a row for each point, and gaps stay gaps", () => {
  expect(show({ type: "line", x: [1, 2], y: [5, null], yerr: [[0.5, 1], null] })).toEqual([
    ["day", "price", "price ±"],
    [1, 5, "0.5 … 1"],
    [2, null, null],
  ]);
});

test("a scatter includes the numbers behind its colours", () => {
  expect(show({ type: "scatter", x: [1, 2], y: [3, 4], z: [[10, 20]] })).toEqual([
    ["day", "price", "value"],
    [1, 3, 10],
    [2, 4, 20],
  ]);
});

test("a box has its five numbers and its outliers", () => {
  const tickLabels = [{ at: 0, text: "A" }];
  expect(show({ type: "box", x: [0], y: [[1, 2, 3, 4, 5]], z: [[9, 12]] }, { scale: "category", tickLabels })).toEqual([
    ["day", "low", "lower quartile", "median", "upper quartile", "high", "outliers"],
    ["A", 1, 2, 3, 4, 5, "9, 12"],
  ]);
});

test("a histogram has the start and the end of each bin", () => {
  expect(show({ type: "histogram", x: [0, 10], y: [3, 4], edges: [0, 10, 20] })).toEqual([
    ["day", "price", "to"],
    [0, 3, 10],
    [10, 4, 20],
  ]);
});

test("a heatmap has one row for each cell", () => {
  const tickLabels = [
    { at: 0, text: "Mon" },
    { at: 1, text: "Tue" },
  ];
  expect(show({ type: "heatmap", x: [0, 1], y: [5], z: [[1, null]] }, { scale: "category", tickLabels })).toEqual([
    ["x", "y", "value"],
    ["Mon", 5, 1],
    ["Tue", 5, null],
  ]);
});

test("a pie has a row for each slice", () => {
  expect(show({ type: "pie", x: [0, 1], y: [3, 4], labels: ["a", null] })).toEqual([
    ["day", "price"],
    ["a", 3],
    ["slice 2", 4],
  ]);
});

test("limits and integers beyond 2^53 are shown as they are", () => {
  expect(show({ type: "errorbar", x: [1, 2], y: ["9007199254740993", 2], yerr: [0.1, 0.2], uplims: [true, false] })).toEqual([
    ["day", "price", "price ±", "price limit"],
    [1, "9007199254740993", 0.1, "upper"],
    [2, 2, 0.2, null],
  ]);
});

describe("places", () => {
  const dollars = [
    { at: 1e6, text: "$1M" },
    { at: 2e6, text: "$2M" },
  ];

  test("stay numbers, with tick labels beside those that are on a tick", () => {
    expect(show({ type: "line", x: [1, 2], y: [1e6, 1.5e6] }, {}, { tickLabels: dollars })).toEqual([
      ["day", "price", "price (label)"],
      [1, 1e6, "$1M"],
      [2, 1.5e6, null],
    ]);
    expect(show({ type: "line", x: [1], y: [1.5e6] }, {}, { tickLabels: dollars })).toEqual([
      ["day", "price"],
      [1, 1.5e6],
    ]);
  });

  test("of bars beside their tick have the category of their bar", () => {
    const tickLabels = [
      { at: 0, text: "A" },
      { at: 1, text: "B" },
    ];
    expect(show({ type: "bar", x: [0.6, 1.6], y: [3, 4], xCategories: [0, 1] }, { scale: "category", tickLabels })).toEqual([
      ["day", "day (label)", "price"],
      [0.6, "A", 3],
      [1.6, "B", 4],
    ]);
  });

  test("on a time axis are times of the axis' zone", () => {
    const summer = Date.UTC(2024, 6, 1, 22);
    const winter = Date.UTC(2024, 0, 1);
    const times = (x: number[], more: Partial<FigureSeries> = {}, zone?: string): unknown[] =>
      show({ type: "line", x, y: x.map(() => 1), ...more }, { scale: "time", ...(zone === undefined ? {} : { zone }) })
        .slice(1)
        .map(([time]) => time);
    expect(times([summer, winter + 0.5, winter + 0.123])).toEqual([
      "2024-07-01T22:00:00",
      "2024-01-01T00:00:00.000500",
      "2024-01-01T00:00:00.000123",
    ]);
    expect(times([summer, winter + 250], {}, "Europe/Berlin")).toEqual(["2024-07-02T00:00:00+02:00", "2024-01-01T01:00:00.250+01:00"]);
    expect(times([summer], {}, "-03:30")).toEqual(["2024-07-01T18:30:00-03:30"]);
    expect(times([summer], {}, "UTC")).toEqual(["2024-07-01T22:00:00+00:00"]);
    expect(times([summer], {}, "Mars/Olympus")).toEqual(["2024-07-01T22:00:00+00:00"]);
    expect(times([winter + 1], { xNanoseconds: [2] })).toEqual(["2024-01-01T00:00:00.001000002"]);
    expect(times([1e300])).toEqual(["1e+300"]);
  });
});

test("a figure that an older version stored is shown like a new one", () => {
  const axes = { xScale: "time", yScale: "linear", unread: [] };
  const series = [{ type: "line", x: ["2024-01-01T00:00:00", null], y: [1, 2] }];
  expect(showStored({ axes: [{ ...axes, series }] })).toEqual([
    ["x", "y"],
    ["2024-01-01T00:00:00", 1],
    [null, 2],
  ]);
});
