import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lines, png } from "./fixtures/create-png.ts";
import { readPng } from "./read-png.ts";

/** The pixels of a uniformly grey picture as a line filter encodes them. Every filter has other bytes for the same picture. */
function filteredLines({ width, height, grey, filter }: { width: number; height: number; grey: number; filter: number }): Buffer {
  const stride = 3 * width;
  const out = Buffer.alloc(height * (1 + stride));
  for (let y = 0; y < height; y += 1) {
    out[y * (1 + stride)] = filter;
    for (let x = 0; x < stride; x += 1) {
      const left = x < 3 ? 0 : grey;
      const up = y === 0 ? 0 : grey;
      const corner = x < 3 || y === 0 ? 0 : grey;
      const nearest = [left, up, corner].toSorted((a, b) => Math.abs(left + up - corner - a) - Math.abs(left + up - corner - b))[0]!;
      out[y * (1 + stride) + 1 + x] = grey - [0, left, up, (left + up) >> 1, nearest][filter]!;
    }
  }
  return out;
}

describe("readPng", () => {
  test("finds the size, and that something is drawn", () => {
    expect(readPng(png({ width: 40, height: 30, lines: lines(40, 30, (x) => (x < 20 ? 0 : 255)) }))).toEqual({
      ok: true,
      width: 40,
      height: 30,
      blank: false,
    });
  });

  test("reports a picture as blank if it has one colour or hardly differs from its border", () => {
    const square = { width: 100, height: 100 };
    const dots = (count: number): Buffer => lines(100, 100, (x, y) => (x === 50 && y < count ? 0 : 255));
    expect(readPng(png({ ...square, lines: dots(0) }))).toEqual({ ok: true, ...square, blank: true });
    expect(readPng(png({ ...square, lines: dots(10) }))).toEqual({ ok: true, ...square, blank: true });
    expect(readPng(png({ ...square, lines: dots(11) }))).toEqual({ ok: true, ...square, blank: false });
  });

  test.each([0, 1, 2, 3, 4])("undoes filter %i: a grey picture is blank, and one changed byte makes it differ", (filter) => {
    const size = { width: 20, height: 20 };
    const grey = filteredLines({ ...size, grey: 200, filter });
    expect(readPng(png({ ...size, lines: grey }))).toEqual({ ok: true, ...size, blank: true });
    grey[5 * 61 + 31]! ^= 1; // filters spread it to the pixels below and beside it
    expect(readPng(png({ ...size, lines: grey }))).toEqual({ ok: true, ...size, blank: false });
  });

  test("rejects an unknown filter", () => {
    const odd = lines(4, 4, () => 1, 5);
    expect(readPng(png({ width: 4, height: 4, lines: odd }))).toEqual({ ok: false, why: "is a PNG that cannot be decoded" });
  });

  test("rejects a picture that is too large before inflating it, and caps the inflated size", () => {
    const huge = png({ width: 2, height: 2, lines: lines(2, 2, () => 0), claim: { width: 100_000, height: 100_000 } });
    expect(readPng(huge)).toEqual({ ok: false, why: "has 100000 x 100000 pixels, at most 50000000 pixels are allowed" });
    const bomb = png({ width: 2, height: 2, lines: Buffer.alloc(50_000_000) });
    expect(readPng(bomb)).toEqual({ ok: false, why: "is a PNG that cannot be decoded" });
  });

  test("rejects a PNG that is truncated, changed, followed by other bytes, or of an unsupported kind", () => {
    const good = png({ width: 40, height: 30, lines: lines(40, 30, (x) => x) });
    const damaged = { ok: false, why: "is a damaged PNG" };
    expect(readPng(good.subarray(0, -5))).toEqual(damaged);
    expect(readPng(good.subarray(0, 60))).toEqual(damaged);
    expect(readPng(Buffer.concat([good, Buffer.from("<script>")]))).toEqual(damaged);
    const lastByte = Buffer.from(good);
    lastByte[lastByte.length - 1]! ^= 1;
    expect(readPng(lastByte)).toEqual(damaged);
    expect(readPng(png({ width: 40, height: 30, lines: lines(40, 29, (x) => x) }))).toEqual({
      ok: false,
      why: "is a PNG that cannot be decoded",
    });
    expect(readPng(Buffer.from("GIF89a".padEnd(80)))).toEqual({ ok: false, why: "is not a PNG" });
    expect(readPng(png({ width: 4, height: 4, lines: lines(4, 4, () => 1), depth: 16 }))).toEqual({
      ok: false,
      why: "is a PNG of a kind that save_figure does not write",
    });
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const bad = Buffer.from(good);
        bad[at]! ^= change;
        expect(readPng(bad).ok).toBe(false);
      }),
    );
  });
});
