import { splitCsv } from "./split-csv.ts";
import type { DatasetTable } from "./contract.ts";
import { readRows, type CsvCell } from "./read-rows.ts";

/**
 * A table as CSV, UTF-8, one header line. Numbers stand there with the digits that were sent. Text that a spreadsheet would take for a formula is
 * prefixed with `'`; numbers never are. Null when it takes Python to read the table (Parquet, Excel).
 */
export function toCsv(bytes: Uint8Array, { format, path }: Pick<DatasetTable, "format" | "path">): string | null {
  if (format === "csv" || format === "tsv") {
    const text = new TextDecoder().decode(bytes);
    return splitCsv(text, format === "csv" ? "," : "\t")
      .map((row) => toLine(row.map((cell) => ({ text: cell, isText: true }))))
      .join("");
  }
  const rows = readRows(bytes, { format, path });
  if (rows === null) return null;
  const columns = new Map<string, number>();
  for (const row of rows) for (const name of row.keys()) if (!columns.has(name)) columns.set(name, columns.size);
  const names = [...columns.keys()];
  const header = toLine(names.map((name) => ({ text: name, isText: true })));
  return header + rows.map((row) => toLine(names.map((name) => row.get(name) ?? nothing))).join("");
}

const nothing: CsvCell = { text: "", isText: false };

export function toLine(cells: readonly CsvCell[]): string {
  return `${cells.map(toCell).join(",")}\n`;
}

function toCell({ text, isText }: CsvCell): string {
  const safe = isText && /^[=+\-@\t\r]/.test(text) && !isNumber(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) || /^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Decimals travel as text, and are numbers all the same. */
function isNumber(text: string): boolean {
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text);
}
