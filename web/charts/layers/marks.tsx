import { memo, useId } from "react";
import { usePlotArea } from "recharts";
import type { Plot } from "../plot.ts";
import type { Stacked } from "../stack.ts";
import { AreaLayer } from "./area-layer.tsx";
import { BarLayer } from "./bar-layer.tsx";
import { CandleLayer } from "./candle-layer.tsx";
import { ErrorLayer } from "./error-layer.tsx";
import { HeatLayer } from "./heat-layer.tsx";
import { LineLayer } from "./line-layer.tsx";
import { PointLayer } from "./point-layer.tsx";

interface MarksProps {
  readonly plot: Plot;
  readonly stacked: readonly Stacked[];
}

const order = { area: 0, bar: 1, line: 2, scatter: 3 } as const;

/** Draws all marks, clipped to the plot: areas behind bars behind lines behind points. */
export const Marks = memo(function Marks({ plot, stacked }: MarksProps) {
  const area = usePlotArea();
  const id = `clip-${useId().replaceAll(/\W/g, "")}`;
  if (!area) return null;
  const bars = stacked.filter(({ series }) => series.mark === "bar");
  const slots = plot.spec.stacked ? 1 : Math.max(1, bars.length);
  const slotOf = (one: Stacked): number => (plot.spec.stacked ? 0 : Math.max(0, bars.indexOf(one)));
  const drawn = [...stacked].sort((a, b) => order[a.series.mark] - order[b.series.mark]);
  return (
    <g clipPath={`url(#${id})`} className="chart-marks">
      <clipPath id={id}>
        <rect x={area.x - 1} y={area.y - 1} width={area.width + 2} height={area.height + 2} />
      </clipPath>
      {plot.heat && <HeatLayer heat={plot.heat} />}
      {plot.candles && <CandleLayer plot={plot} />}
      {drawn.map((one) => {
        const { key, mark } = one.series;
        if (mark === "area") return <AreaLayer key={key} plot={plot} stacked={one} />;
        if (mark === "bar") return <BarLayer key={key} plot={plot} stacked={one} slot={slotOf(one)} slots={slots} />;
        return mark === "line" ? <LineLayer key={key} plot={plot} stacked={one} /> : <PointLayer key={key} plot={plot} stacked={one} />;
      })}
      {drawn.map((one) =>
        one.series.errors ? <ErrorLayer key={one.series.key} plot={plot} stacked={one} slot={slotOf(one)} slots={slots} /> : null,
      )}
    </g>
  );
});
