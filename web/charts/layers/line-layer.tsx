import { colourOf, dashOf } from "../palette.ts";
import type { Plot } from "../plot.ts";
import type { Stacked } from "../stack.ts";
import { round, useScales, type Scales } from "./scales.ts";

/** Draws a line with gaps at null; a point between two gaps becomes a dot. */
export function LineLayer({ plot, stacked: { series, to } }: { plot: Plot; stacked: Stacked }) {
  const scales = useScales(series.side);
  if (!scales) return null;
  const colour = colourOf(series.colour);
  const points = toPoints(plot.x.values, to, scales);
  const dots = points.length <= 60 ? points.flatMap((point) => (point ? [point] : [])) : isolatedPoints(points);
  return (
    <g>
      <path
        d={toPath(points)}
        fill="none"
        strokeWidth={1.75}
        strokeLinejoin="round"
        style={{ stroke: colour }}
        strokeDasharray={dashOf(series.colour)}
      />
      {dots.length > 0 && <path d={toDots(dots, points.length <= 60 ? 2.25 : 1.75)} style={{ fill: colour }} />}
    </g>
  );
}

type Point = readonly [x: number, y: number] | null;

export function toPoints(xs: readonly number[], ys: readonly (number | null)[], { x, y }: Scales): Point[] {
  return ys.map((value, index) => (value === null ? null : [round(x(xs[index] ?? 0)), round(y(value))]));
}

export function toPath(points: readonly Point[]): string {
  return points.map((point, index) => (point ? `${points[index - 1] ? "L" : "M"}${point[0]} ${point[1]}` : "")).join("");
}

function isolatedPoints(points: readonly Point[]): (readonly [number, number])[] {
  return points.flatMap((point, index) => (point && !points[index - 1] && !points[index + 1] ? [point] : []));
}

export function toDots(points: readonly (readonly [number, number])[], radius: number): string {
  return points
    .map(([x, y]) => `M${x - radius} ${y}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0`)
    .join("");
}
