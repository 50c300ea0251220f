import { memo, useMemo, useState } from "react";
import type { ChartRow, ChartSpec } from "../../src/protocol/chart-spec.ts";
import { texts } from "../texts.ts";
import { ChartBoundary } from "./chart-boundary.tsx";
import { ChartLegend } from "./chart-legend.tsx";
import { ChartPlot } from "./chart-plot.tsx";
import { columnsOf } from "./columns-of.ts";
import { DataTable } from "./data-table.tsx";
import { HeatScale } from "./heat-scale.tsx";
import { toPlot } from "./to-plot.ts";

export interface ChartViewProps {
  readonly spec: ChartSpec;
  readonly data: readonly ChartRow[];
  readonly title?: string | undefined;
  readonly height?: number;
}

/** One chart: its drawing, its legend, and its numbers as a table. What it gets was checked. */
export const ChartView = memo(function ChartView(props: ChartViewProps) {
  return (
    <ChartBoundary>
      <ChartBody {...props} />
    </ChartBoundary>
  );
});

function ChartBody({ spec, data, title = texts.chart.untitled, height = 320 }: ChartViewProps) {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [asTable, setAsTable] = useState(false);
  const plot = useMemo(() => toPlot(spec, data), [spec, data]);
  const visible = useMemo(() => plot.series.filter(({ key }) => !hidden.has(key)), [plot, hidden]);
  const hasLegend = plot.series.length > 0 && spec.legend !== false && (plot.series.length > 1 || spec.legend === true);
  const isEmpty = plot.series.length > 0 && visible.length === 0 && !plot.candles;
  const toggle = (key: string): void =>
    setHidden(hidden.has(key) ? new Set([...hidden].filter((one) => one !== key)) : new Set([...hidden, key]));
  return (
    <figure className="chart">
      <figcaption>
        <span className="chart-title">{title}</span>
        <button type="button" className="quiet" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          {texts.chart.showTable}
        </button>
      </figcaption>
      {hasLegend && <ChartLegend series={plot.series} hidden={hidden} onToggle={toggle} />}
      {plot.heat && <HeatScale heat={plot.heat} label={spec.valueKey ?? ""} />}
      {isEmpty ? (
        <p className="chart-note">{texts.chart.allHidden}</p>
      ) : (
        <ChartPlot plot={plot} visible={visible} title={title} height={height} />
      )}
      {asTable && <DataTable caption={texts.chart.table} columns={columnsOf(spec, data)} rows={data} />}
    </figure>
  );
}
