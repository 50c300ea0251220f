import { texts } from "../texts.ts";
import { colourOf } from "./palette.ts";
import type { PlotSeries } from "./plot.ts";

interface ChartLegendProps {
  readonly series: readonly PlotSeries[];
  readonly hidden: ReadonlySet<string>;
  onToggle(key: string): void;
}

export function ChartLegend({ series, hidden, onToggle }: ChartLegendProps) {
  return (
    <ul className="chart-legend" aria-label={texts.chart.legend}>
      {series.map(({ key, label, colour, mark }) => (
        <li key={key}>
          <button type="button" aria-pressed={!hidden.has(key)} onClick={() => onToggle(key)}>
            <span className={`chart-swatch chart-swatch-${mark}`} style={{ background: colourOf(colour) }} />
            {label}
          </button>
        </li>
      ))}
    </ul>
  );
}
