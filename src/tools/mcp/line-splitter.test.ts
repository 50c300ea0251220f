import fc from "fast-check";
import { expect, it } from "vitest";
import { LineSplitter } from "./line-splitter.ts";

it("splits at line feeds, wherever chunks end", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("a", "é", "\n") }), fc.integer({ min: 1, max: 5 }), (text, size) => {
      const bytes = Buffer.from(text);
      const splitter = new LineSplitter(1_000);
      const lines: string[] = [];
      for (let start = 0; start < bytes.length; start += size)
        lines.push(...splitter.push(bytes.subarray(start, start + size)).map(String));
      expect(lines).toEqual(text.split("\n").slice(0, -1));
    }),
  );
});

it("rejects a line that is too long before it has ended", () => {
  const splitter = new LineSplitter(5);
  expect(splitter.push(Buffer.from("12345\n123")).map(String)).toEqual(["12345"]);
  expect(() => splitter.push(Buffer.from("456"))).toThrow(new RangeError("a message is longer than 5 bytes"));
});
