import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { measureText } from "./output-part.ts";

const PIECE = 131_072;

describe("measureText", () => {
  it("agrees with Buffer.byteLength and isWellFormed for every text", () => {
    const text = fc.array(fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("\uD83D", "\uDE00", "é", "a")), { maxLength: 30 });
    fc.assert(
      fc.property(text, fc.constantFrom(0, 3, 131_064, 131_070, 262_140), fc.constantFrom("a", "é", "€"), (parts, pad, fill) => {
        expectRight(fill.repeat(pad) + parts.join(""));
      }),
      { numRuns: 300 },
    );
  });

  it.each(["a", "é", "漢", "😀"])("finds a character at every position among many %s", (fill) => {
    for (const seen of ["é", "€", "\uFFFF", "😀", "\uD83D", "\uDE00", "\uDE00\uD83D"])
      for (let at = 0; at < 70; at++) {
        expectRight(fill.repeat(at) + seen);
        expectRight(fill.repeat(at) + seen + fill.repeat(70));
      }
  });

  it.each([131_070, 131_071, 131_072, 262_143])("does not split a surrogate pair at %i", (at) => {
    const sent = `${"€".repeat(at)}😀${"x".repeat(270_000)}`;
    expect(measureText(sent)).toBe(3 * at + 4 + 270_000);
    expect(measureText(sent.replace("😀", "\uD83D"))).toBe(null);
    expect(measureText(sent.replace("😀", "\uDE00"))).toBe(null);
  });

  it("finds an unpaired surrogate at the start and at the end of a piece", () => {
    const [low, high, rest] = ["\uDE00", "\uD83D", "漢".repeat(PIECE - 1)];
    for (const sent of [low + rest, rest + high, rest + high + rest, rest + high + high, `${rest}漢${low}`, `${rest}漢${low}${rest}`])
      expect(measureText(sent)).toBe(null);
  });

  it("counts pieces of only the longest characters", () => {
    expect(measureText("ÿ".repeat(3 * PIECE))).toBe(6 * PIECE);
    expect(measureText("\uFFFF".repeat(3 * PIECE))).toBe(9 * PIECE);
    expect(measureText("😀".repeat(2 * PIECE))).toBe(8 * PIECE);
    expect(measureText(`a${"😀".repeat(2 * PIECE)}`)).toBe(1 + 8 * PIECE);
  });

  it("counts ASCII text with other text in the next piece", () => {
    for (const later of ["", "a", "é", "€", "😀", "\uD83D", "\uDE00"])
      for (const before of [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE]) expectRight("a".repeat(before) + later + "a".repeat(PIECE));
  });

  it("keeps no state between texts", () => {
    expect(measureText("😀".repeat(PIECE))).toBe(4 * PIECE);
    expect(measureText("漢\uD83D")).toBe(null);
    expect(measureText("漢")).toBe(3);
    expect(measureText("")).toBe(0);
  });
});

function expectRight(sent: string): void {
  expect(measureText(sent)).toBe(sent.isWellFormed() ? Buffer.byteLength(sent) : null);
}
