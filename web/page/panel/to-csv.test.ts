import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { toCsv } from "./to-csv.ts";

/** The same cases as in python/tests/test_tables.py. */
const { guarded, kept } = JSON.parse(readFileSync(new URL("../../../corpus/csv-formulas.json", import.meta.url), "utf8")) as Record<
  "guarded" | "kept",
  string[]
>;

const fieldOf = (label: string): string => toCsv({ columns: [{ key: "x", label }], rows: [{ x: label }] });
const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

test.each(guarded)("prefixes %j in the head and in a cell", (text) => {
  expect(fieldOf(text)).toBe(`${quoted(`'${text}`)}\r\n${quoted(`'${text}`)}\r\n`);
});

test.each(kept)("keeps %j", (text) => {
  expect(fieldOf(text)).toBe(`${quoted(text)}\r\n${quoted(text)}\r\n`);
});
