import { readCsvRows } from "./read-csv-rows.ts";

/** CSV text as rows of cells. */
export function splitCsv(text: string, separator: string): string[][] {
  return [...readCsvRows([text.startsWith("\uFEFF") ? text.slice(1) : text], separator)];
}
