import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readCsv } from "./read-csv.ts";

function rowsOf(text: string): (readonly string[])[] {
  const { columns, count, cells } = readCsv(text);
  return columns.length === 0 ? [] : [columns, ...Array.from({ length: count }, (_, index) => cells(index))];
}

describe("readCsv", () => {
  test.each([
    ["a,b\n1,2\n", ["a|b", "1|2"]],
    ["\uFEFFa,b\r\n\r\n1,2", ["a|b", "1|2"]],
    ['"a ""b""","c\nd",\n', ['a "b"|c\nd|']],
    ['5" pipe,"x"y\n6" pipe,z', ['5" pipe|xy', '6" pipe|z']],
    ['"never closed\n1', ["never closed\n1"]],
    ["", []],
  ])("splits %j into rows", (text, rows) => {
    expect(rowsOf(text).map((cells) => cells.join("|"))).toEqual(rows);
  });

  test("returns the written cells, whatever they contain", () => {
    const cell = fc.array(fc.constantFrom("a", "1", ",", '"', "\n", "\r\n", '""', " "), { maxLength: 6 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell), { minLength: 1 }), (rows) => {
        const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`;
        expect(rowsOf(rows.map((row) => `${row.map(quote).join(",")}\n`).join(""))).toEqual(rows);
      }),
      { numRuns: 1000 },
    );
  });
});
