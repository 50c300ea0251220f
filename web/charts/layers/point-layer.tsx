import { colourOf } from "../palette.ts";
import type { Plot } from "../plot.ts";
import type { Stacked } from "../stack.ts";
import { toDots, toPoints } from "./line-layer.tsx";
import { useScales } from "./scales.ts";

export function PointLayer({ plot, stacked: { series, to } }: { plot: Plot; stacked: Stacked }) {
  const scales = useScales(series.side);
  if (!scales) return null;
  const points = toPoints(plot.x.values, to, scales).flatMap((point) => (point ? [point] : []));
  const radius = points.length > 1500 ? 1.75 : points.length > 300 ? 2.5 : 3.5;
  return <path d={toDots(points, radius)} fillOpacity={points.length > 300 ? 0.55 : 0.75} style={{ fill: colourOf(series.colour) }} />;
}
