import { heatColour } from "../palette.ts";
import type { PlotHeat } from "../plot.ts";
import { round, useScales } from "./scales.ts";

const shades = 64;

/** Draws cells of nearly the same value as one shape: five thousand cells become a few dozen nodes. A cell without a value stays empty. */
export function HeatLayer({ heat }: { heat: PlotHeat }) {
  const scales = useScales("left");
  if (!scales) return null;
  const { min, max, cells } = heat;
  const shapes = new Map<number, string[]>();
  for (const { column, row, value } of cells) {
    const shade = value === null ? -1 : max === min ? 0 : Math.round(((value - min) / (max - min)) * shades);
    const [x1, x2] = [round(scales.x(column - 0.5)), round(scales.x(column + 0.5))];
    const [y1, y2] = [round(scales.y(row - 0.5)), round(scales.y(row + 0.5))];
    const gap = x2 - x1 > 6 && Math.abs(y2 - y1) > 6 ? 0.5 : 0;
    const shape = `M${x1 + gap} ${y1 + gap}H${x2 - gap}V${y2 - gap}H${x1 + gap}Z`;
    const list = shapes.get(shade) ?? [];
    list.push(shape);
    shapes.set(shade, list);
  }
  return (
    <g>
      {[...shapes].map(([shade, list]) => (
        <path
          key={shade}
          d={list.join("")}
          className={shade < 0 ? "chart-empty" : undefined}
          style={shade < 0 ? undefined : { fill: heatColour(max === min ? min : min + ((max - min) * shade) / shades, min, max) }}
        />
      ))}
    </g>
  );
}
