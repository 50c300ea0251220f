import { useMemo, useRef, useState } from "react";
import { CartesianGrid, ComposedChart, ReferenceArea, ReferenceLine, XAxis, YAxis } from "recharts";
import { texts } from "../texts.ts";
import { xDomain, xPlace, yTicks, type Range } from "./domains.ts";
import { formatTick } from "./format-value.ts";
import { AxisNames } from "./layers/axis-names.tsx";
import { BrushLayer, brushHeight } from "./layers/brush-layer.tsx";
import { HoverLayer, type KeyReader } from "./layers/hover-layer.tsx";
import { Marks } from "./layers/marks.tsx";
import { ReferenceWords } from "./layers/reference-layer.tsx";
import type { Plot, PlotSeries, Side } from "./plot.ts";
import { stack } from "./stack.ts";
import type { RangeInView } from "./use-range.ts";
import { useWidth } from "./use-width.ts";
import { xTicks, type XTicks } from "./x-ticks.ts";

interface ChartPlotProps {
  readonly plot: Plot;
  readonly visible: readonly PlotSeries[];
  readonly title: string;
  readonly height: number;
  readonly inView: RangeInView;
}

const minOverhang = 12;
/** Recharts gets no rows, because it is slow with thousands of them. Our layers draw the marks. */
const noRows: object[] = [];

/** The drawing: Recharts draws axes, grid and references; our layers draw marks and brush, one shape per series. */
export function ChartPlot({ plot, visible, title, height, inView }: ChartPlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const keys = useRef<KeyReader | null>(null);
  const [host, setHost] = useState<HTMLDivElement | null>(null);
  const width = useWidth(box);
  const last = plot.rows.length - 1;
  const { range } = inView;
  const stacked = useMemo(() => stack(plot, visible), [plot, visible]);
  const frame = useMemo(() => toFrame(plot, stacked, range, width), [plot, stacked, range, width]);
  const { left, right, x, domain } = frame;
  const hasBrush = plot.spec.brush === true && !plot.heat && last > 1;
  const xTitleHeight = plot.spec.xAxis?.label === undefined ? 0 : 18;
  const top = plot.spec.yAxis?.label !== undefined || plot.spec.yAxisRight?.label !== undefined || plot.heat ? 24 : 10;

  return (
    <div
      ref={box}
      className="chart-plot"
      role="group"
      tabIndex={0}
      aria-label={`${describeChart(plot, title)} ${texts.chart.keys}`}
      onKeyDown={(event) => {
        if (event.target === event.currentTarget && keys.current?.(event.key)) event.preventDefault();
      }}
    >
      {width > 0 && (
        <ComposedChart
          width={width}
          height={height}
          data={noRows}
          accessibilityLayer={false}
          margin={{ top, right: right ? 2 : frame.overhang, bottom: xTitleHeight + (hasBrush ? brushHeight + 8 : 0), left: 2 }}
        >
          <CartesianGrid vertical={false} horizontal={!plot.heat} yAxisId={left ? "left" : "right"} className="chart-grid" />
          <XAxis
            dataKey="x"
            type="number"
            domain={domain}
            ticks={[...x.values]}
            interval={0}
            allowDataOverflow
            tickFormatter={x.format}
            angle={x.angle}
            textAnchor={x.angle === 0 ? "middle" : "end"}
            height={x.height}
            tickMargin={4}
            tickSize={4}
          />
          {left && <YAxis yAxisId="left" {...yAxis(left)} tickFormatter={left.format} reversed={plot.heat !== null} />}
          {right && <YAxis yAxisId="right" orientation="right" {...yAxis(right)} tickFormatter={right.format} />}
          {(plot.spec.referenceAreas ?? []).map((area, index) => {
            const half = plot.x.kind === "category" ? 0.5 : 0;
            const [x1, x2] = [area.x1, area.x2].map((value) => (value === undefined ? undefined : (xPlace(plot, value) ?? undefined)));
            const missing = area.x1 !== undefined && (x1 === undefined || x2 === undefined);
            return missing ? null : (
              <ReferenceArea
                key={index}
                yAxisId={left ? "left" : "right"}
                x1={x1 === undefined ? undefined : x1 - half}
                x2={x2 === undefined ? undefined : x2 + half}
                y1={area.y1}
                y2={area.y2}
                ifOverflow="hidden"
                className="chart-reference-area"
              />
            );
          })}
          <Marks plot={plot} stacked={stacked} />
          {(plot.spec.referenceLines ?? []).map(({ axis, value }, index) => {
            const side: Side = axis === "yRight" ? "right" : left ? "left" : "right";
            const at = axis === "x" ? xPlace(plot, value) : Number(value);
            if (at === null || (side === "right" && !right)) return null;
            return (
              <ReferenceLine
                key={index}
                yAxisId={side}
                {...(axis === "x" ? { x: at } : { y: at })}
                ifOverflow="hidden"
                zIndex={0}
                className="chart-reference-line"
              />
            );
          })}
          <ReferenceWords plot={plot} />
          <AxisNames plot={plot} bottom={height - 4} />
          <HoverLayer plot={plot} stacked={stacked} inView={inView} host={host} keys={keys} />
          {hasBrush && (
            <BrushLayer
              inView={inView}
              places={last + 1}
              top={height - xTitleHeight - brushHeight - 2}
              labelAt={(place) => String(plot.rows[place]?.[plot.spec.xKey])}
            />
          )}
        </ComposedChart>
      )}
      <div ref={setHost} className="chart-host" />
    </div>
  );
}

/** Describes a chart in one sentence for screen readers. */
function describeChart({ type, spec, series, rows }: Plot, title: string): string {
  const what = spec.valueKey ?? (series.length > 0 ? series.map(({ label }) => label) : texts.chart.candle).join(", ");
  return texts.chart.describe(texts.chart.types[type], title, rows.length, what);
}

/** One y axis as it is drawn. */
interface YFrame {
  readonly ticks: readonly number[];
  readonly ends: [number, number];
  readonly width: number;
  readonly format: (value: number) => string;
}

function toFrame(plot: Plot, stacked: ReturnType<typeof stack>, range: Range, width: number) {
  const [left, right] = plot.heat
    ? [heatAxis(plot.heat.rows), null]
    : [sideAxis(plot, stacked, range, "left"), sideAxis(plot, stacked, range, "right")];
  const domain: [number, number] = plot.heat ? [range.start - 0.5, range.end + 0.5] : xDomain(plot, range);
  const labelled = plot.heat ? { ...plot, x: { ...plot.x, labels: plot.heat.columns } } : plot;
  const room = Math.max(40, width - (left?.width ?? 0) - (right?.width ?? minOverhang));
  const x = xTicks(labelled, domain, room);
  return { left, right, domain, x, overhang: overhangOf(x, domain, room) };
}

/** How far the last x label extends beyond the right edge of the plot. */
function overhangOf({ values, angle, format }: XTicks, [from, to]: readonly [number, number], room: number): number {
  const last = values.at(-1) ?? to;
  const toEdge = ((to - last) / (to - from || 1)) * room;
  return angle === 0 ? Math.max(minOverhang, Math.ceil((format(last).length * 6.6) / 2 - toEdge)) : minOverhang;
}

function sideAxis(plot: Plot, stacked: ReturnType<typeof stack>, range: Range, side: Side): YFrame | null {
  const isUsed = plot.series.some((series) => series.side === side) || (side === "left" && plot.candles !== null);
  if (!isUsed) return null;
  const ticks = yTicks(plot, stacked, side, range);
  const axis = side === "left" ? plot.spec.yAxis : plot.spec.yAxisRight;
  const format = (value: number): string => formatTick(value, axis);
  return { ticks, format, ends: [ticks[0] ?? 0, ticks.at(-1) ?? 1], width: widthOf(ticks.map(format)) };
}

function heatAxis(rows: readonly string[]): YFrame {
  const every = Math.ceil(rows.length / 24);
  const format = (value: number): string => (rows[value] ?? "").slice(0, 24);
  const ticks = rows.map((_row, index) => index).filter((index) => index % every === 0);
  return { ticks, format, ends: [-0.5, rows.length - 0.5], width: Math.min(150, widthOf(rows.map((row) => row.slice(0, 24)))) };
}

function widthOf(labels: readonly string[]): number {
  return labels.reduce((longest, label) => Math.max(longest, label.length), 1) * 6.8 + 14;
}

function yAxis({ ticks, ends, width }: YFrame) {
  return {
    type: "number",
    domain: ends,
    ticks: [...ticks],
    width,
    interval: 0,
    allowDataOverflow: true,
    tickLine: false,
    axisLine: false,
    tickMargin: 4,
  } as const;
}
