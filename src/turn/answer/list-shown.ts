import { toDrawing } from "../../interpreter/findings.ts";
import type { ArtifactEnvelope } from "../../protocol/artifact.ts";
import type { FigureAxis, FigureSeries } from "../../protocol/figure.ts";
import { readFigure } from "../../protocol/read-figure.ts";
import { isRecord } from "../../text/json.ts";
import type { Shown } from "./uncorrected-amounts.ts";

const MAX_DEPTH = 5;
/** Of all results and drawings of a turn. */
const MAX_NUMBERS = 100_000;

/** Lists what results and drawings show: their numbers, and which ranges of time they cover. */
export function listShown(results: readonly unknown[], artifacts: readonly ArtifactEnvelope[]): Shown {
  const spans: [number, number][] = [];
  const numbers: number[] = [];
  const addSpan = (places: readonly unknown[]): void => {
    const times = places.map(toPeriod);
    if (times.length === 0 || times.some((time) => time === null)) return;
    const known = times as [number, number][];
    spans.push([
      known.reduce((low, [from]) => Math.min(low, from), Infinity),
      known.reduce((high, [, to]) => Math.max(high, to), -Infinity),
    ]);
  };
  const readResult = (value: unknown, depth: number): void => {
    if (typeof value === "number" && numbers.length < MAX_NUMBERS) numbers.push(value);
    if (depth === 0 || typeof value !== "object" || value === null) return;
    if (isRecord(value)) addSpan(Object.keys(value));
    if (Array.isArray(value))
      for (const key of Object.keys((value[0] as object | null) ?? {}))
        addSpan(value.map((row) => (row as Record<string, unknown> | null)?.[key]));
    for (const inner of Object.values(value)) readResult(inner, depth - 1);
  };
  for (const result of results) readResult(result, MAX_DEPTH);
  for (const artifact of artifacts) {
    const drawing = toDrawing(artifact);
    for (const { values } of drawing.series)
      for (const value of values) if (value !== null && numbers.length < MAX_NUMBERS) numbers.push(value);
    if (artifact.kind === "chart") addSpan(artifact.data.map((row) => row[artifact.spec.xKey]));
    else if (artifact.figure !== undefined)
      for (const { x, y, series } of readFigure(artifact.figure).axes)
        for (const one of series)
          for (const [name, axis] of [
            ["x", x],
            ["y", y],
          ] as const)
            addSpan(listPlaces(one, name, axis));
  }
  return { spans, numbers };
}

/** The places of a series on an axis of times, or of categories that are times. */
function listPlaces(series: FigureSeries, name: "x" | "y", { scale, tickLabels = [], zone }: FigureAxis): unknown[] {
  if (scale === "time") return series[name].filter((at) => at !== null).map((at) => new Date(toWallClock(Number(at), zone)).toISOString());
  if (scale !== "category") return [];
  const categories = series[`${name}Categories`];
  return categories === undefined
    ? series[name].filter((at) => at !== null).map((at) => tickLabels.find((label) => label.at === at)?.text)
    : categories.map((index) => tickLabels[index]?.text);
}

/** Milliseconds on the clock of a zone, written as if they were UTC. An unknown zone counts as UTC. */
function toWallClock(milliseconds: number, zone: string | undefined): number {
  if (zone === undefined || zone === "UTC") return milliseconds;
  try {
    const text = new Date(milliseconds).toLocaleString("sv-SE", { timeZone: zone });
    return Date.parse(`${text.replace(" ", "T")}Z`);
  } catch {
    return milliseconds;
  }
}

const PERIOD = /^(\d{4})(?:-(?:(\d{2})(?:-(\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?)?|Q([1-4])))?$/;
const HOUR = 3_600_000;

/** A year, quarter, month, day or moment as its first and last millisecond on its own wall clock; null for anything else. */
function toPeriod(text: unknown): [number, number] | null {
  const [, year, month, day, clock, quarter] = (typeof text === "string" ? PERIOD.exec(text) : null) ?? [];
  if (year === undefined) return null;
  if (clock !== undefined) {
    const at = Date.parse(`${year}-${month}-${day}T${clock}Z`);
    return Number.isNaN(at) ? null : [at, at];
  }
  const first = quarter === undefined ? Number(month ?? 1) - 1 : 3 * (Number(quarter) - 1);
  const months = month !== undefined ? 1 : quarter !== undefined ? 3 : 12;
  const from = Date.UTC(Number(year), first, Number(day ?? 1));
  const to = day === undefined ? Date.UTC(Number(year), first + months) : from + 24 * HOUR;
  return [from, to - 1];
}
