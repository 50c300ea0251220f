import fc from "fast-check";
import { expect, test } from "vitest";
import { createJsonShape, jsonShapeLimits } from "./json-shape.ts";

function check(text: string, pieceBytes = 1000): string | null {
  const bytes = Buffer.from(text);
  const shape = createJsonShape();
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const problem = shape(bytes.subarray(at, at + pieceBytes));
    if (problem !== null) return problem;
  }
  return null;
}

const { levels, keysOfOneObject, objectsAndArrays, values } = jsonShapeLimits;
const keys = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"k${at}":[1]`).join(",")}}`;

test.each([
  {
    what: "levels",
    fits: `${"[".repeat(levels)}${"]".repeat(levels)}`,
    exceeds: "[".repeat(levels + 1),
    why: "It is nested more than 256 levels deep.",
  },
  {
    what: "keys of one object",
    fits: keys(keysOfOneObject),
    exceeds: keys(keysOfOneObject + 1),
    why: "One object has more than 20,000 keys.",
  },
  {
    what: "objects and arrays",
    fits: `[${"{},".repeat(objectsAndArrays - 1)}1]`,
    exceeds: `[${"{},".repeat(objectsAndArrays)}1]`,
    why: "It has more than 1,000,000 objects and arrays.",
  },
  { what: "values", fits: "1,".repeat(values), exceeds: "1,".repeat(values + 1), why: "It has more than 4,000,000 values." },
])("names the limit of $what that a text exceeds", ({ fits, exceeds, why }) => {
  expect([check(fits), check(exceeds)]).toEqual([null, why]);
});

test("brackets, commas and quotes in strings are text, wherever the bytes are cut", () => {
  const structure = `[{:,}]"\\é`.repeat(1000);
  fc.assert(
    fc.property(fc.array(fc.string({ unit: fc.constantFrom(...'[]{}:,\\"é') })), fc.integer({ min: 1, max: 50 }), (texts, pieceBytes) => {
      expect(check(JSON.stringify([structure, ...texts]), pieceBytes)).toBeNull();
    }),
    { numRuns: 50 },
  );
  expect(check(JSON.stringify(structure.repeat(100)))).toBeNull();
});

test("many small objects with the same keys fit", () => {
  expect(check(JSON.stringify(Array.from({ length: 50_000 }, (_, day) => ({ day, price: 1 }))))).toBeNull();
});
