import { useXAxisScale, useYAxisScale } from "recharts";

export interface Scales {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
}

/** Scales of the surrounding chart, from values to pixels; null before the first layout. */
export function useScales(side: "left" | "right"): Scales | null {
  const [x, y] = [useXAxisScale(0), useYAxisScale(side)];
  if (!x || !y) return null;
  return { x: (value) => x(value) ?? Number.NaN, y: (value) => y(value) ?? Number.NaN };
}

/** Rounds to a tenth of a pixel. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
