import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countTurns } from "../../test/fixtures/count-turns.ts";
import { createJsonCheck, isJson } from "./is-json.ts";

function judge(text: string, step: number): boolean {
  const check = createJsonCheck(text);
  for (let until = step; ; until += step) {
    const verdict = check(until);
    if (verdict !== null) return verdict;
  }
}

function canParse(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe("whether a text is JSON", () => {
  it.each([
    "",
    " ",
    "[",
    "]",
    "{}",
    "[1,]",
    '{"a"}',
    '{"a":1,}',
    '{"a":1',
    "01",
    "1.",
    "-",
    "1e",
    "nul",
    "true false",
    '"\\x"',
    '"\\u12"',
    '"\t"',
  ])("is judged of %j as JSON.parse does", (text) => expect(judge(text, 1)).toBe(canParse(text)));

  it("is judged as JSON.parse does, whatever the text and however it is cut into turns", () => {
    const spaced = fc.json({ maxDepth: 4 }).map((json) => JSON.stringify(JSON.parse(json), null, 1));
    const broken = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom("", ",", '"', "}", "]", "\\", "0", "e", ":", "\n"))
      .map(([json, at, put]) => json.slice(0, at % (json.length + 1)) + put + json.slice((at % (json.length + 1)) + 1));
    fc.assert(
      fc.property(fc.oneof(fc.json(), spaced, broken, fc.string()), fc.integer({ min: 1, max: 9 }), (text, step) => {
        expect(judge(text, step)).toBe(canParse(text));
      }),
      { numRuns: 2_000 },
    );
  });

  it("is judged of long texts in turns of the event loop, which others have meanwhile", async () => {
    const text = `[${"1.25,".repeat(1_000_000)}"${"é\\n".repeat(300_000)}"]`;
    const { value, turns } = await countTurns(async () => [await isJson(text), await isJson(`${text}]`)]);
    expect(value).toEqual([true, false]);
    expect(turns).toBeGreaterThan(20);
  });
});
