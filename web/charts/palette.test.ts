import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { colourCount, heatColour } from "./palette.ts";

type Triple = readonly [number, number, number];

const theme = readFileSync(path.join(import.meta.dirname, "../style/theme.css"), "utf8");
const series = Array.from({ length: colourCount }, (_none, index) => `--series-${index + 1}`);

/** Simulates colour vision without one kind of cones, on linear RGB (Machado, Oliveira and Fernandes, 2009, full severity). */
const visions: Readonly<Record<string, readonly [Triple, Triple, Triple]>> = {
  "all cones": [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

/** CIEDE2000 distance. A trained eye just notices 1 side by side; 10 is visible at a glance. */
const leastDifference = 11.5;

describe.each(["light", "dark"] as const)("the colours of series in %s", (scheme) => {
  test.each(Object.keys(visions))("are told apart with %s", (vision) => {
    const seen = series.map((name) => [name, toLab(see(visions[vision] ?? [], toLinear(valueOf(name, scheme))))] as const);
    const close = seen.flatMap(([a, one], index) =>
      seen
        .slice(index + 1)
        .flatMap(([b, other]) => (difference(one, other) < leastDifference ? [`${a} ${b} ${difference(one, other)}`] : [])),
    );
    expect(close).toEqual([]);
  });

  test.each(["--surface", "--ground"])("stand out from %s by 3 to 1", (ground) => {
    const faint = series.filter((name) => contrast(toLinear(valueOf(name, scheme)), toLinear(valueOf(ground, scheme))) < 3);
    expect(faint).toEqual([]);
  });
});

test.each([
  ["from low to high", { from: 0, to: 10, min: 0 }],
  ["from zero down", { from: 0, to: -10, min: -10 }],
  ["from zero up", { from: 0, to: 10, min: -10 }],
])("the shades of a heatmap grow lighter or darker all the way %s, with every kind of colour vision", (_way, { from, to, min }) => {
  const shades = Array.from({ length: 6 }, (_none, index) => toHex(heatColour(from + ((to - from) * index) / 5, min, 10)));
  for (const vision of Object.values(visions)) {
    const lightness = shades.map((shade) => toLab(see(vision, toLinear(shade)))[0]);
    const steps = lightness.slice(1).map((one, index) => Math.sign(one - (lightness[index] ?? 0)));
    expect(new Set(steps).size).toBe(1);
  }
});

/** Test data of Sharma, Wu and Dalal (2005) for the distance itself. */
test.each([
  [[50, 2.6772, -79.7751], [50, 0, -82.7485], 2.0425],
  [[50, -1, 2], [50, 0, 0], 2.3669],
  [[50, 2.5, 0], [73, 25, -18], 27.1492],
  [[22.7233, 20.0904, -46.694], [23.0331, 14.973, -42.5619], 2.0373],
] as [Triple, Triple, number][])("the difference of %j and %j is %f", (one, other, expected) => {
  expect(difference(one, other)).toBeCloseTo(expected, 4);
});

function valueOf(name: string, scheme: "light" | "dark"): string {
  const [, light, dark] = new RegExp(String.raw`${name}: light-dark\((#\w{6}), (#\w{6})\)`).exec(theme) ?? [];
  if (light === undefined || dark === undefined) throw new Error(`theme.css has no ${name} of two colours.`);
  return scheme === "light" ? light : dark;
}

function toHex(rgb: string): string {
  return `#${[...rgb.matchAll(/\d+/g)].map(([part]) => Number(part).toString(16).padStart(2, "0")).join("")}`;
}

function toLinear(hex: string): Triple {
  const part = (at: number): number => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [part(1), part(3), part(5)];
}

function see(rows: readonly Triple[], rgb: Triple): Triple {
  const [r = 0, g = 0, b = 0] = rows.map((row) => Math.min(1, Math.max(0, row[0] * rgb[0] + row[1] * rgb[1] + row[2] * rgb[2])));
  return [r, g, b];
}

function luminance([r, g, b]: Triple): number {
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one: Triple, other: Triple): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function toLab([r, g, b]: Triple): Triple {
  const bend = (t: number): number => (t > 216 / 24389 ? Math.cbrt(t) : ((24389 / 27) * t + 16) / 116);
  const x = bend((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
  const y = bend(0.2126729 * r + 0.7151522 * g + 0.072175 * b);
  const z = bend((0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function difference([l1, a1, b1]: Triple, [l2, a2, b2]: Triple): number {
  const rad = Math.PI / 180;
  const pull = (c: number): number => Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7));
  const g = 0.5 * (1 - pull((Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2));
  const [x1, x2] = [(1 + g) * a1, (1 + g) * a2];
  const [c1, c2] = [Math.hypot(x1, b1), Math.hypot(x2, b2)];
  const angle = (b: number, a: number): number => (Math.atan2(b, a) / rad + 360) % 360;
  const [h1, h2] = [angle(b1, x1), angle(b2, x2)];
  const turn = c1 * c2 === 0 ? 0 : ((h2 - h1 + 540) % 360) - 180;
  const [dl, dc, dh] = [l2 - l1, c2 - c1, 2 * Math.sqrt(c1 * c2) * Math.sin((turn / 2) * rad)];
  const [l, c] = [(l1 + l2) / 2, (c1 + c2) / 2];
  const h = c1 * c2 === 0 ? h1 + h2 : (h1 + turn / 2 + 360) % 360;
  const t =
    1 -
    0.17 * Math.cos((h - 30) * rad) +
    0.24 * Math.cos(2 * h * rad) +
    0.32 * Math.cos((3 * h + 6) * rad) -
    0.2 * Math.cos((4 * h - 63) * rad);
  const [sl, sc, sh] = [1 + (0.015 * (l - 50) ** 2) / Math.sqrt(20 + (l - 50) ** 2), 1 + 0.045 * c, 1 + 0.015 * c * t];
  const rt = -Math.sin(60 * Math.exp(-(((h - 275) / 25) ** 2)) * rad) * 2 * pull(c);
  return Math.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rt * (dc / sc) * (dh / sh));
}
