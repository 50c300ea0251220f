import { Component, useMemo, useState, type ReactNode } from "react";
import type { ChartRow, ChartSpec } from "../../src/protocol/chart-spec.ts";
import { texts } from "../texts.ts";
import { ChartLegend } from "./chart-legend.tsx";
import { ChartPlot } from "./chart-plot.tsx";
import { HeatScale } from "./heat-scale.tsx";
import { toPlot } from "./to-plot.ts";
import { useRange } from "./use-range.ts";
import { ZoomBar } from "./zoom-bar.tsx";

interface ChartDrawingProps {
  readonly spec: ChartSpec;
  readonly data: readonly ChartRow[];
  readonly title: string;
  readonly height: number;
  readonly canZoom?: boolean;
}

/** Legend and plot of a validated chart. */
export function ChartDrawing(props: ChartDrawingProps) {
  return (
    <ChartBoundary>
      <Drawing {...props} />
    </ChartBoundary>
  );
}

function Drawing({ spec, data, title, height, canZoom = false }: ChartDrawingProps) {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const plot = useMemo(() => toPlot(spec, data), [spec, data]);
  const inView = useRange(plot.heat ? plot.heat.columns.length : plot.rows.length);
  const visible = useMemo(() => plot.series.filter(({ key }) => !hidden.has(key)), [plot, hidden]);
  const hasLegend = plot.series.length > 0 && spec.legend !== false && (plot.series.length > 1 || spec.legend === true);
  const isEmpty = plot.series.length > 0 && visible.length === 0 && !plot.candles;
  const toggle = (key: string): void =>
    setHidden(hidden.has(key) ? new Set([...hidden].filter((one) => one !== key)) : new Set([...hidden, key]));
  const drawing = isEmpty ? (
    <p className="chart-note">{texts.chart.allHidden}</p>
  ) : (
    <ChartPlot plot={plot} visible={visible} title={title} height={height} inView={inView} />
  );
  return (
    <>
      {hasLegend && <ChartLegend series={plot.series} hidden={hidden} onToggle={toggle} />}
      {plot.heat && <HeatScale heat={plot.heat} label={spec.valueKey ?? ""} />}
      {canZoom ? <ZoomBar zoom={inView.zoom}>{drawing}</ZoomBar> : drawing}
    </>
  );
}

/** Error boundary: a chart that cannot be drawn shows a message, and the rest of the page stays. */
class ChartBoundary extends Component<{ readonly children: ReactNode }, { readonly reason: string | null }> {
  override state: { readonly reason: string | null } = { reason: null };

  static getDerivedStateFromError(error: unknown): { reason: string } {
    return { reason: error instanceof Error ? error.message : String(error) };
  }

  override render(): ReactNode {
    if (this.state.reason === null) return this.props.children;
    return (
      <p role="alert" className="chart-note">
        {texts.chart.broken}: {this.state.reason}
      </p>
    );
  }
}
