import type { NumberTable } from "./figure-rows.ts";

/** RFC 4180. Text that a spreadsheet would read as a formula is prefixed with a quote; numbers are not. */
export function toCsv({ columns, rows }: Pick<NumberTable, "columns" | "rows">): string {
  const head = columns.map(({ label }) => toField(label)).join(",");
  const body = rows.map((row) => columns.map(({ key }) => toField(row[key] ?? null)).join(","));
  return `${[head, ...body].join("\r\n")}\r\n`;
}

function toField(cell: string | number | null): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const safe = formula.test(cell) && !number.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** `=+-@`, also in full-width and small forms, and after white space and invisible characters, which a spreadsheet may drop. */
const formula = /^(?:[\t\r]|[\s\p{Cc}\u200b-\u200f\u2060]*[=+\-@＝＋－＠﹦﹢﹣﹫])/u;
const number = /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s*$/i;
