import { expect, test } from "vitest";
import type { FigureSeries } from "../../../src/protocol/figure.ts";
import { toNumberTables } from "./figure-rows.ts";

function tableOf(series: FigureSeries): ReturnType<typeof toNumberTables>[number] | undefined {
  const axes = { xLabel: "day", yLabel: "price", xScale: "linear", yScale: "linear", series: [series], unread: [] } as const;
  const figure = { axes: [{ ...axes, series: [...axes.series], unread: [] }] };
  const image = {
    schemaVersion: 1,
    kind: "image",
    url: "",
    contentHash: "0",
    alt: "",
    width: 1,
    height: 1,
    bytes: 1,
    mimeType: "image/png",
    figure,
  };
  return toNumberTables(image as unknown as Parameters<typeof toNumberTables>[0])[0];
}

const shown = (series: FigureSeries): unknown[][] => {
  const table = tableOf(series);
  return [table?.columns.map(({ label }) => label) ?? [], ...(table?.rows.map((row) => table.columns.map(({ key }) => row[key])) ?? [])];
};

test("a line has a row for each point, and gaps stay gaps", () => {
  expect(shown({ type: "line", x: [1, 2], y: [5, null], yerr: [[0.5, 1], null] })).toEqual([
    ["day", "price", "price ±"],
    [1, 5, "0.5 … 1"],
    [2, null, null],
  ]);
});

test("a scatter includes the numbers behind its colours", () => {
  expect(shown({ type: "scatter", x: [1, 2], y: [3, 4], z: [[10, 20]] })).toEqual([
    ["day", "price", "value"],
    [1, 3, 10],
    [2, 4, 20],
  ]);
});

test("a box has its five numbers and its outliers", () => {
  expect(shown({ type: "box", x: ["A"], y: [[1, 2, 3, 4, 5]], z: [[9, 12]] })).toEqual([
    ["day", "low", "lower quartile", "median", "upper quartile", "high", "outliers"],
    ["A", 1, 2, 3, 4, 5, "9, 12"],
  ]);
});

test("a histogram has the start and the end of each bin", () => {
  expect(shown({ type: "histogram", x: [0, 10], y: [3, 4], edges: [0, 10, 20] })).toEqual([
    ["day", "price", "to"],
    [0, 3, 10],
    [10, 4, 20],
  ]);
});

test("a heatmap has one row for each cell", () => {
  expect(shown({ type: "heatmap", x: ["Mon", "Tue"], y: ["a"], z: [[1, null]] })).toEqual([
    ["x", "y", "value"],
    ["Mon", "a", 1],
    ["Tue", "a", null],
  ]);
});
