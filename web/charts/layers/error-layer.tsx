import type { Plot } from "../plot.ts";
import type { Stacked } from "../stack.ts";
import { barBox } from "./bar-layer.tsx";
import { round, useScales } from "./scales.ts";

interface ErrorLayerProps {
  readonly plot: Plot;
  readonly stacked: Stacked;
  readonly slot: number;
  readonly slots: number;
}

export function ErrorLayer({ plot, stacked: { series, to }, slot, slots }: ErrorLayerProps) {
  const scales = useScales(series.side);
  if (!scales || !series.errors) return null;
  const box = barBox(plot, scales, slot, slots);
  const shift = series.mark === "bar" ? box.left + box.width / 2 : 0;
  const marks = to.map((value, index) => {
    const error = series.errors?.[index];
    if (value === null || error == null) return "";
    const x = round(scales.x((plot.x.values[index] ?? 0) + shift));
    const [top, bottom] = [round(scales.y(value + error)), round(scales.y(value - error))];
    return `M${x} ${top}V${bottom}M${x - 4} ${top}H${x + 4}M${x - 4} ${bottom}H${x + 4}`;
  });
  return <path d={marks.join("")} fill="none" className="chart-error" />;
}
