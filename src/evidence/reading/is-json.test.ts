import { expect, it } from "vitest";
import { countLoopIterations } from "../../../test/fixtures/event-loop.ts";
import { isJson } from "./create-output-reader.ts";

it.each([
  ["null", true],
  ["{}", true],
  ["[1,]", false],
  ["NaN", false],
  ["", false],
])("agrees with JSON.parse about %j", async (text, verdict) => expect(await isJson(text)).toBe(verdict));

it("parses long texts in a worker thread without blocking the event loop", async () => {
  const text = `[${"1.25,".repeat(1_000_000)}"${"é\\n".repeat(300_000)}"]`;
  const { value, iterations } = await countLoopIterations(async () => [await isJson(text), await isJson(`${text}]`)]);
  expect(value).toEqual([true, false]);
  expect(iterations).toBeGreaterThan(20);
});
