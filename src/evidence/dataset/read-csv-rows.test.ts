import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readCsvRows } from "./read-csv-rows.ts";

describe("rows of a CSV", () => {
  test.each([
    [
      "a,b\n1,2\n",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    [
      "a,b\r\n1,2",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    ['"a ""b""","c\nd",\n', [['a "b"', "c\nd", ""]]],
    ['5" pipe,"x"y\n', [['5" pipe', "xy"]]],
    ['"never closed\n1', [["never closed\n1"]]],
    ["", []],
  ])("of %j", (text, rows) => {
    expect([...readCsvRows([text], ",")]).toEqual(rows);
  });

  test("are the same wherever the text is cut into pieces", () => {
    const texts = fc
      .array(fc.constantFrom("a", "1", ",", '"', "\n", "\r", "\r\n", '""', " "), { maxLength: 30 })
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(texts, fc.array(fc.nat(30), { maxLength: 4 }), (text, cuts) => {
        const at = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length];
        const pieces = at.slice(1).map((end, index) => text.slice(at[index], end));
        expect([...readCsvRows(pieces, ",")]).toEqual([...readCsvRows([text], ",")]);
      }),
      { numRuns: 2000 },
    );
  });
});
