import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { measureText } from "./measure-text.ts";

describe("measureText", () => {
  it("agrees with the language about every text: its bytes, or that it has none", () => {
    const text = fc.array(fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("\uD83D", "\uDE00", "é", "a")), { maxLength: 30 });
    fc.assert(
      fc.property(text, fc.constantFrom(0, 3, 32_760, 32_766, 65_530), fc.constantFrom("a", "é", "€"), (parts, pad, fill) => {
        const sent = fill.repeat(pad) + parts.join("");
        expect(measureText(sent)).toEqual({ bytes: sent.isWellFormed() ? Buffer.byteLength(sent) : null });
      }),
      { numRuns: 300 },
    );
  });

  it.each([32_766, 32_767, 32_768, 65_535])("does not cut a character of two halves that stands at %i", (at) => {
    const sent = `${"€".repeat(at)}😀${"x".repeat(70_000)}`;
    expect(measureText(sent)).toEqual({ bytes: 3 * at + 4 + 70_000 });
    expect(measureText(sent.replace("😀", "\uD83D"))).toEqual({ bytes: null });
    expect(measureText(sent.replace("😀", "\uDE00"))).toEqual({ bytes: null });
  });
});
