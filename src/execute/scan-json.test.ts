import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scanJson } from "./scan-json.ts";

const limits = { depth: 100, values: 50_000 };

describe("JSON text, before it is parsed", () => {
  it.each<[json: string, inexact: string | null]>([
    ['{"id":9007199254740993}', "9007199254740993"],
    ['{"id":-9007199254740993,"b":1e400}', "-9007199254740993"],
    ['{"id":9007199254740991}', null],
    ['{"id":"9007199254740993"}', null],
    ['{"9007199254740993":"\\"9007199254740993"}', null],
    ['{"id":9007199254740993.5,"b":1234567890123456e5}', null],
    [`[${"9".repeat(500)}]`, "9".repeat(400)],
  ])("%s has the inexact integer %s", (json, inexact) => {
    expect(scanJson(json, limits)).toEqual({ over: null, inexact });
  });

  it("is over its depth or its values only outside of texts", () => {
    expect(scanJson("[".repeat(101), limits).over).toBe("depth");
    expect(scanJson(JSON.stringify("[".repeat(1000)), limits).over).toBeNull();
    expect(scanJson(`[${"1,".repeat(60_000)}1]`, limits).over).toBe("values");
    expect(scanJson(JSON.stringify(",".repeat(60_000)), limits).over).toBeNull();
  });

  it("has as many values as it has after parsing, and the same integers past 2^53", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer({ min: 0, max: 40 }), (value, limit) => {
        const json = JSON.stringify(value);
        expect(scanJson(json, { depth: 1000, values: limit }).over).toBe(count(value) > limit ? "values" : null);
        let inexact = 0;
        JSON.parse(json, (_key, item: unknown, context?: { source?: string }) => {
          if (typeof item === "number" && !Number.isSafeInteger(item) && /^-?\d+$/.test(context?.source ?? "")) inexact += 1;
          return item;
        });
        expect(scanJson(json, limits).inexact !== null).toBe(inexact > 0);
      }),
    );
  });
});

/** Containers, and the items in them; what is empty counts as if it had one. */
function count(value: unknown): number {
  return 1 + inside(value);
}

function inside(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const items = Object.values(value);
  return 1 + Math.max(0, items.length - 1) + items.reduce((sum: number, item) => sum + inside(item), 0);
}
