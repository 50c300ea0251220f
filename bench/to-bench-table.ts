import type { BenchRow } from "./bench-row.ts";

const columns = ["figure", "value", "baseline", "ratio", "target", "met"] as const;

/** Formats bench rows as a table with value, baseline, ratio, target and verdict. */
export function toBenchTable(rows: readonly BenchRow[]): string {
  const lines = [[...columns], ...rows.map(toCells)];
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const isNumber = (column: number): boolean => column === 1 || column === 3 || column === 4;
  const print = (line: readonly string[]): string =>
    line
      .map((cell, column) => (isNumber(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join("  ")
      .trimEnd();
  const [head, ...body] = lines.map(print);
  const judged = rows.filter((row) => row.met !== null);
  const summary = `${judged.filter((row) => row.met).length} of ${judged.length} targets met`;
  return [head, widths.map((width) => "─".repeat(width)).join("  "), ...body, "", summary].join("\n");
}

function toCells({ name, value, unit, baseline, baselineName, ratio, target, met }: BenchRow): string[] {
  const baselineText = baseline === null ? "–" : `${baselineName} ${baseline} ${unit}`;
  const targetText = target === null ? "–" : ratio === null ? `≤ ${target} ${unit}` : `≤ ${target}`;
  return [name, `${value} ${unit}`, baselineText, ratio === null ? "–" : String(ratio), targetText, met === null ? "" : met ? "yes" : "NO"];
}
