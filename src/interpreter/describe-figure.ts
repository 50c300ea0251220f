import type { Figure, FigureSeries } from "../protocol/figure.ts";

const MAX_SERIES = 12;
const MAX_AXES = 6;

/** The numbers behind a picture in brief: what was drawn, how many points, from where to where. */
export function describeFigure(figure: Figure): unknown[] {
  const more = figure.axes.length - MAX_AXES;
  const shown = figure.axes.slice(0, MAX_AXES).map(({ title, xLabel, yLabel, series, unread }) => ({
    ...(title ? { title } : {}),
    ...(xLabel ? { x: xLabel } : {}),
    ...(yLabel ? { y: yLabel } : {}),
    series: series.slice(0, MAX_SERIES).map(describeSeries),
    ...(series.length > MAX_SERIES ? { moreSeries: series.length - MAX_SERIES } : {}),
    ...(unread.length > 0 ? { unread: unread.length } : {}),
  }));
  return more > 0 ? [...shown, { moreAxes: more }] : shown;
}

function describeSeries({ type, label, x, y }: FigureSeries): unknown {
  const numbers = y.filter((value): value is number => typeof value === "number");
  const gaps = y.filter((value) => value === null).length;
  const places = x.filter((value) => value !== null && !Array.isArray(value));
  return {
    type,
    ...(label ? { label } : {}),
    points: y.length,
    ...(gaps > 0 ? { gaps } : {}),
    ...(places.length > 0 ? { from: places[0], to: places.at(-1) } : {}),
    ...(numbers.length > 0 ? { min: minOf(numbers), max: maxOf(numbers), last: numbers.at(-1) } : {}),
  };
}

function minOf(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => Math.min(a, b));
}

function maxOf(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => Math.max(a, b));
}
