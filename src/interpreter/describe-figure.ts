import { clipText } from "../evidence/preview/clip-text.ts";
import type { Figure, FigureSeries } from "../protocol/figure.ts";

/** How much of each picture and chart is told. */
export interface BriefLimits {
  readonly axes: number;
  readonly series: number;
  /** Of each title, label and name. */
  readonly characters: number;
}

/** The numbers behind a picture in brief: what was drawn, how many points, from where to where. What is left out is counted. */
export function describeFigure(figure: Figure, limits: BriefLimits): unknown[] {
  const more = figure.axes.length - limits.axes;
  const clip = (text: string): string => clipText(text, limits.characters);
  const shown = figure.axes.slice(0, limits.axes).map(({ title, xLabel, yLabel, series, unread }) => ({
    ...(title ? { title: clip(title) } : {}),
    ...(xLabel ? { x: clip(xLabel) } : {}),
    ...(yLabel ? { y: clip(yLabel) } : {}),
    series: series.slice(0, limits.series).map((one) => describeSeries(one, clip)),
    ...(series.length > limits.series ? { moreSeries: series.length - limits.series } : {}),
    ...(unread.length > 0 ? { unread: unread.length } : {}),
  }));
  return more > 0 ? [...shown, { moreAxes: more }] : shown;
}

function describeSeries({ type, label, x, y }: FigureSeries, clip: (text: string) => string): unknown {
  const place = (value: unknown): unknown => (typeof value === "string" ? clip(value) : value);
  const numbers = y.filter((value): value is number => typeof value === "number");
  const gaps = y.filter((value) => value === null).length;
  const places = x.filter((value) => value !== null && !Array.isArray(value));
  return {
    type,
    ...(label ? { label: clip(label) } : {}),
    points: y.length,
    ...(gaps > 0 ? { gaps } : {}),
    ...(places.length > 0 ? { from: place(places[0]), to: place(places.at(-1)) } : {}),
    ...(numbers.length > 0 ? { min: minOf(numbers), max: maxOf(numbers), last: numbers.at(-1) } : {}),
  };
}

function minOf(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => Math.min(a, b));
}

function maxOf(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => Math.max(a, b));
}
