import type { Plot } from "../plot.ts";
import { round, useScales } from "./scales.ts";

/** A hollow body rose, a filled one fell, so that colour is not the only difference. */
export function CandleLayer({ plot }: { plot: Plot }) {
  const scales = useScales("left");
  if (!scales || !plot.candles) return null;
  const [rose, fell]: [string[], string[]] = [[], []];
  for (const [index, candle] of plot.candles.entries()) {
    if (!candle) continue;
    const [open, high, low, close] = candle;
    const at = plot.x.values[index] ?? 0;
    const middle = round(scales.x(at));
    const half = Math.max(0.5, scales.x(at + plot.x.step * 0.35) - scales.x(at));
    const [top, bottom] = [round(scales.y(Math.max(open, close))), round(scales.y(Math.min(open, close)))];
    const body = `M${round(middle - half)} ${top}H${round(middle + half)}V${bottom}H${round(middle - half)}Z`;
    const wicks = `M${middle} ${round(scales.y(high))}V${top}M${middle} ${bottom}V${round(scales.y(low))}`;
    (close >= open ? rose : fell).push(wicks + body);
  }
  return (
    <g>
      <path d={rose.join("")} className="chart-rose" />
      <path d={fell.join("")} className="chart-fell" />
    </g>
  );
}
