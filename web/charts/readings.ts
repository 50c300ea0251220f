import { texts } from "../texts.ts";
import { formatExact, formatTick } from "./format-value.ts";
import { colourOf } from "./palette.ts";
import type { Plot, PlotSeries } from "./plot.ts";

/** What the pointer or the keyboard points at: a row, and in a scatter chart one of its points. */
export interface Target {
  readonly index: number;
  readonly series?: PlotSeries;
}

export interface Reading {
  readonly label: string;
  readonly text: string;
  readonly colour?: string;
}

/** The exact values at one position. */
export function readingsAt(
  plot: Plot,
  visible: readonly PlotSeries[],
  { index, series: only }: Target,
): { title: string; items: Reading[] } {
  const { spec, heat, candles } = plot;
  const row = plot.rows[index] ?? {};
  if (heat) {
    const value = row[spec.valueKey ?? ""];
    const text = typeof value === "number" ? formatExact(value) : texts.chart.noValue;
    return { title: `${String(row[spec.xKey])} · ${String(row[spec.yKey ?? ""])}`, items: [{ label: spec.valueKey ?? "", text }] };
  }
  const shown = only ? [only] : visible;
  return {
    title: titleAt(plot, index),
    items: [...(candles ? candleReadings(plot, index) : []), ...shown.map((series) => toReading(plot, series, index))],
  };
}

function titleAt({ type, x, rows, spec }: Plot, index: number): string {
  const cell = rows[index]?.[spec.xKey] ?? "";
  if (typeof cell !== "number" || x.kind === "category") return String(cell);
  const text = formatExact(cell, x.axis);
  return type === "histogram" ? `${text} – ${formatTick(cell + x.step, x.axis)}` : `${x.axis.label ?? spec.xKey}: ${text}`;
}

function toReading({ spec }: Plot, series: PlotSeries, index: number): Reading {
  const value = series.values[index] ?? null;
  const axis = series.side === "left" ? spec.yAxis : spec.yAxisRight;
  const error = series.errors?.[index] ?? null;
  const text = value === null ? texts.chart.noValue : formatExact(value, axis) + (error === null ? "" : ` ± ${formatExact(error, axis)}`);
  return { label: series.label, text, colour: colourOf(series.colour) };
}

function candleReadings({ candles, spec }: Plot, index: number): Reading[] {
  const candle = candles?.[index];
  return texts.chart.candle.map((label, place) => ({
    label,
    text: candle ? formatExact(candle[place] ?? 0, spec.yAxis) : texts.chart.noValue,
  }));
}
