import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { splitCsv } from "./split-csv.ts";
import { toCsv } from "./to-csv.ts";

const bytes = (value: unknown): Uint8Array => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
const json = { format: "json", path: [] } as const;

describe("a table as CSV", () => {
  test("has all columns in the order in which they came, and the digits that were sent", () => {
    const text = '[{"id":12345678901234567890,"x":1.10},{"x":null,"y":true,"n":{"a":1.0}}]';
    expect(toCsv(bytes(text), json)).toBe('id,x,y,n\n12345678901234567890,1.10,,\n,,true,"{""a"":1.0}"\n');
  });

  test("prefixes text that a spreadsheet would take for a formula, and no number", () => {
    const rows = ["=1+1", "+x", "-x", "@x", "\tx", "\rx", "-5", "-1.5e3", "plain"].map((cell) => ({ "=cell": cell, n: -5 }));
    expect(toCsv(bytes(rows), json)).toBe(`'=cell,n\n'=1+1,-5\n'+x,-5\n'-x,-5\n'@x,-5\n'\tx,-5\n"'\rx",-5\n-5,-5\n-1.5e3,-5\nplain,-5\n`);
  });

  test("finds rows inside, takes values, lists and maps", () => {
    expect(toCsv(bytes({ data: { items: [1, "a"] } }), { format: "json", path: ["data", "items"] })).toBe("value\n1\na\n");
    expect(toCsv(bytes([[1, 2]]), json)).toBe("0,1\n1,2\n");
    expect(toCsv(bytes({ A: { x: 1 }, B: { x: 2 } }), json)).toBe("key,x\nA,1\nB,2\n");
    expect(toCsv(bytes('{"a":1}\n{"a":2}\n'), { format: "jsonl", path: [] })).toBe("a\n1\n2\n");
    expect(toCsv(bytes("x"), { format: "parquet", path: [] })).toBeNull();
  });

  test("makes CSV that was sent safe, too", () => {
    expect(toCsv(bytes('a,b\r\n"=1,2",x\r\n"say ""hi""",-3\r\n'), { format: "csv", path: [] })).toBe('a,b\n"\'=1,2",x\n"say ""hi""",-3\n');
    expect(toCsv(bytes("a\tb\n1\t@x\n"), { format: "tsv", path: [] })).toBe("a,b\n1,'@x\n");
  });

  test("can be read back, whatever is in it", () => {
    const cell = fc.string({ unit: "grapheme" }).filter((text) => !/^[=+\-@\t\r]/.test(text));
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell), { minLength: 1 }), (rows) => {
        const csv = toCsv(bytes(rows.map(([a, b]) => ({ a, b }))), json)!;
        expect(splitCsv(csv, ",")).toEqual([["a", "b"], ...rows]);
      }),
    );
  });
});
