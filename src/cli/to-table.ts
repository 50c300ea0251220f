const MAX_ROWS = 20;
const MAX_WIDTH = 32;

/** Records as a table for a terminal: numbers to the right, long texts and long tables cut, and it says what was cut. */
export function toTable(records: readonly Record<string, unknown>[]): string {
  const columns = [...new Set(records.flatMap((row) => Object.keys(row)))];
  const shown = records.slice(0, MAX_ROWS);
  const cells = shown.map((row) => columns.map((column) => toCell(row[column])));
  const numeric = columns.map((column) =>
    shown.every((row) => row[column] === null || row[column] === undefined || typeof row[column] === "number"),
  );
  const titles = columns.map((column) => toCell(column));
  const widths = titles.map((title, index) => Math.max(title.length, ...cells.map((row) => row[index]!.length)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, index) => (numeric[index] ? cell.padStart(widths[index]!) : cell.padEnd(widths[index]!)))
      .join("  ")
      .trimEnd();
  const rule = widths.map((width) => "─".repeat(width)).join("  ");
  const rest = records.length - shown.length;
  return [line(titles), rule, ...cells.map(line), ...(rest > 0 ? [`… and ${rest} more rows`] : [])].join("\n");
}

function toCell(value: unknown): string {
  const text = value === null || value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);
  const flat = text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
  return flat.length > MAX_WIDTH ? `${flat.slice(0, MAX_WIDTH - 1)}…` : flat;
}
