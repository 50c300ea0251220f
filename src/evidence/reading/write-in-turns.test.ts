import fc from "fast-check";
import { expect, it } from "vitest";
import { toJsonText } from "../to-json-text.ts";
import { isLargeValue, writeInTurns } from "./write-in-turns.ts";

const rows = (count: number) => Array.from({ length: count }, (_, id) => ({ id, name: `row ${id}`, price: id / 7 }));

it("writes what toJsonText writes, and counts the same losses", { timeout: 120_000 }, async () => {
  const odd = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom<unknown>(undefined, Number.NaN, 2 ** 60, 12345678901234567890n, new Date(0), () => 1, Symbol("x"), new Map()),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(odd, { maxLength: 5 }), fc.dictionary(fc.string(), odd), fc.boolean(), async (list, object, isList) => {
      const large = rows(1_500);
      const value = isList
        ? [...list, large, object, ...list, { ...object, large }]
        : { ...object, large: [list, large], list, more: { large } };
      const { text, precisionLoss } = toJsonText(value);
      const pieces: string[] = [];
      expect(await writeInTurns(value, (piece) => pieces.push(piece))).toEqual(precisionLoss);
      expect(pieces.join("")).toBe(text);
    }),
    { numRuns: 40 },
  );
});

it("is for what is large", () => {
  expect([isLargeValue(rows(100)), isLargeValue({ rows: rows(20_000) }), isLargeValue("x".repeat(6_000_000)), isLargeValue(null)]).toEqual([
    false,
    true,
    true,
    false,
  ]);
});

it("refuses what has no JSON form, and what is nested without end", async () => {
  const cycle: { rows: unknown[]; self?: unknown } = { rows: rows(20_000) };
  cycle.self = cycle;
  await expect(writeInTurns(cycle, () => {})).rejects.toThrow(RangeError);
});
