import { formatTick } from "./format-value.ts";
import { heatColour } from "./palette.ts";
import type { PlotHeat } from "./plot.ts";

const steps = 24;

/** Colour scale of a heatmap. */
export function HeatScale({ heat: { min, max }, label }: { heat: PlotHeat; label: string }) {
  const values = Array.from({ length: steps }, (_none, index) => min + ((max - min) * index) / (steps - 1));
  return (
    <p className="chart-heat-scale">
      <span>{label}</span>
      <span>{formatTick(min, undefined)}</span>
      <svg width={144} height={10} aria-hidden>
        {values.map((value, index) => (
          <rect key={value} x={index * 6} width={6.5} height={10} style={{ fill: heatColour(value, min, max) }} />
        ))}
      </svg>
      <span>{formatTick(max, undefined)}</span>
    </p>
  );
}
