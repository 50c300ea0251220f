import type { ChartRow, ChartSpec } from "../../src/protocol/chart-spec.ts";
import type { PlotHeat } from "./plot.ts";

/** Columns and rows of a heatmap: numbers sorted, text in order of appearance. */
export function toHeat(spec: ChartSpec, data: readonly ChartRow[]): PlotHeat {
  const { xKey, yKey = "", valueKey = "" } = spec;
  const columns = placesOf(data.map((row) => row[xKey] ?? null));
  const rows = placesOf(data.map((row) => row[yKey] ?? null));
  const [columnAt, rowAt] = [indexOf(columns), indexOf(rows)];
  const cells = data.map((row, index) => {
    const value = row[valueKey];
    return {
      column: columnAt.get(String(row[xKey])) ?? 0,
      row: rowAt.get(String(row[yKey])) ?? 0,
      value: typeof value === "number" ? value : null,
      index,
    };
  });
  const known = cells.flatMap(({ value }) => (value === null ? [] : [value]));
  const [min, max] = [known.reduce((a, b) => Math.min(a, b), Infinity), known.reduce((a, b) => Math.max(a, b), -Infinity)];
  return { columns, rows, cells, min, max };
}

function placesOf(cells: readonly (string | number | null)[]): string[] {
  const unique = [...new Set(cells)];
  const isSorted = unique.every((cell) => typeof cell === "number") || unique.every((cell) => /^\d{4}-\d{2}/.test(String(cell)));
  if (isSorted) unique.sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : 1));
  return unique.map(String);
}

function indexOf(places: readonly string[]): Map<string, number> {
  return new Map(places.map((place, index) => [place, index]));
}
