import { colourOf } from "../palette.ts";
import type { Plot } from "../plot.ts";
import type { Stacked } from "../stack.ts";
import { round, useScales, type Scales } from "./scales.ts";

interface BarLayerProps {
  readonly plot: Plot;
  readonly stacked: Stacked;
  /** Index of this bar among the bars side by side. */
  readonly slot: number;
  readonly slots: number;
}

/** Draws all bars of one series as one shape. */
export function BarLayer({ plot, stacked: { series, from, to }, slot, slots }: BarLayerProps) {
  const scales = useScales(series.side);
  if (!scales) return null;
  const { left, width } = barBox(plot, scales, slot, slots);
  const bars = to.map((value, index) => {
    if (value === null) return "";
    const at = plot.x.values[index] ?? 0;
    const [x1, x2] = [scales.x(at + left), scales.x(at + left + width)];
    const gap = x2 - x1 > 4 && plot.type === "histogram" ? 1 : 0;
    const [y1, y2] = [scales.y(from[index] ?? 0), scales.y(value)];
    return `M${round(x1)} ${round(y1)}V${round(y2)}H${round(Math.max(x1 + 0.5, x2 - gap))}V${round(y1)}Z`;
  });
  return <path d={bars.join("")} style={{ fill: colourOf(series.colour) }} />;
}

const widest = 96;

/** Offset and width of a bar, in units of x. The width is capped, so that a few bars in a wide chart stay bars. */
export function barBox({ type, x }: Plot, scales: Scales, slot: number, slots: number): { left: number; width: number } {
  if (type === "histogram") return { left: (x.kind === "category" ? -x.step / 2 : 0) + (slot * x.step) / slots, width: x.step / slots };
  const pixels = Math.abs(scales.x(x.step) - scales.x(0));
  const width = (x.step * Math.min(0.78, (widest * slots) / pixels)) / slots;
  return { left: width * (slot - slots / 2), width };
}
