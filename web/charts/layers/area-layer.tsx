import { colourOf } from "../palette.ts";
import type { Plot } from "../plot.ts";
import type { Stacked } from "../stack.ts";
import { toPath, toPoints } from "./line-layer.tsx";
import { useScales } from "./scales.ts";

export function AreaLayer({ plot, stacked: { series, from, to } }: { plot: Plot; stacked: Stacked }) {
  const scales = useScales(series.side);
  if (!scales) return null;
  const upper = toPoints(plot.x.values, to, scales);
  const lower = toPoints(plot.x.values, from, scales);
  const colour = colourOf(series.colour);
  return (
    <g>
      <path d={toRegions(upper, lower)} fillOpacity={plot.spec.stacked ? 0.55 : 0.22} style={{ fill: colour }} />
      <path d={toPath(upper)} fill="none" strokeWidth={1.5} strokeLinejoin="round" style={{ stroke: colour }} />
    </g>
  );
}

type Points = ReturnType<typeof toPoints>;

/** One closed path per run without a gap: along the upper edge and back along the lower one. */
function toRegions(upper: Points, lower: Points): string {
  const runs: number[][] = [];
  upper.forEach((point, index) => {
    if (!point) return;
    if (upper[index - 1]) runs.at(-1)?.push(index);
    else runs.push([index]);
  });
  return runs
    .map(
      (run) =>
        `M${run.map((index) => join(upper[index])).join("L")}L${run
          .toReversed()
          .map((index) => join(lower[index]))
          .join("L")}Z`,
    )
    .join("");
}

function join(point: Points[number] | undefined): string {
  return point ? `${point[0]} ${point[1]}` : "";
}
