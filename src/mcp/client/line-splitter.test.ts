import fc from "fast-check";
import { expect, it } from "vitest";
import type { LargeMessage } from "../../evidence/reading/create-output-reader.ts";
import { LineSplitter } from "./line-splitter.ts";

it("cuts at line ends, wherever the chunks are cut", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("a", "é", "\n") }), fc.integer({ min: 1, max: 5 }), (text, size) => {
      const bytes = Buffer.from(text);
      const splitter = new LineSplitter(1_000, noLarge);
      const lines: string[] = [];
      for (let at = 0; at < bytes.length; at += size) lines.push(...splitter.push(bytes.subarray(at, at + size)).map(String));
      expect(lines).toEqual(text.split("\n").slice(0, -1));
    }),
  );
});

it("refuses a line that is longer than allowed, before it has ended", () => {
  const splitter = new LineSplitter(5, noLarge);
  expect(splitter.push(Buffer.from("12345\n123")).map(String)).toEqual(["12345"]);
  expect(() => splitter.push(Buffer.from("456"))).toThrow(new RangeError("a message is longer than 5 bytes"));
});

it("hands on what grows large while it comes, and drops what never ends", () => {
  const opened: { text: string; isDropped: boolean }[] = [];
  const openLarge = (): LargeMessage => {
    const seen = { text: "", isDropped: false };
    opened.push(seen);
    return {
      bytes: 0,
      push: (chunk) => void (seen.text += Buffer.from(chunk).toString()),
      read: () => Promise.reject(new Error("not asked for")),
      drop: () => void (seen.isDropped = true),
    };
  };
  const splitter = new LineSplitter(2_000_000, openLarge);
  const long = "x".repeat(300_000);
  expect(splitter.push(Buffer.from(`small\n${long}`)).map(String)).toEqual(["small"]);
  expect(splitter.push(Buffer.from(long))).toEqual([]);
  expect(splitter.push(Buffer.from("end\nsmall again\n")).slice(1).map(String)).toEqual(["small again"]);
  splitter.push(Buffer.from(long + long));
  splitter.end();
  expect(opened.map(({ text, isDropped }) => [text.length, isDropped])).toEqual([
    [600_003, false],
    [600_000, true],
  ]);
});

function noLarge(): LargeMessage {
  throw new Error("nothing here is large");
}
