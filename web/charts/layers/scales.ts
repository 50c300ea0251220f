import { useXAxisScale, useYAxisScale } from "recharts";

export interface Scales {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
}

/** From values to pixels, as the axes of the chart around have them; null until it has been measured. */
export function useScales(side: "left" | "right"): Scales | null {
  const [x, y] = [useXAxisScale(0), useYAxisScale(side)];
  if (!x || !y) return null;
  return { x: (value) => x(value) ?? Number.NaN, y: (value) => y(value) ?? Number.NaN };
}

/** A tenth of a pixel is enough. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
