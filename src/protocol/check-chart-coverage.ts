import type { ChartRow, ChartSeries, ChartSpec } from "./chart-spec.ts";
import { judgeByCadence } from "./judge-by-cadence.ts";
import { judgeCoverage, type CoverageVerdict, type PlottedSeries } from "./judge-coverage.ts";
import { DAY } from "./time-steps.ts";

/** A series with less than 60 % of its expected points. Cells report the same in `diagnostics.lowCoverage`. */
interface LowCoverage {
  readonly axes: number;
  readonly label: string;
  readonly observed: number;
  readonly expected: number;
  readonly coverage: number;
  /** The label of the series whose places were expected, or `its own index` or `its own step`. */
  readonly against: string;
  readonly largestGap: string;
  readonly gapStart: string;
  readonly gapEnd: string;
}

export interface ChartCoverage {
  readonly low: readonly LowCoverage[];
  /** Series whose steps are irregular and that nothing can be compared with. */
  readonly unknown: readonly { readonly axes: number; readonly label: string; readonly observed: number }[];
}

/** By label or key of a series: the intended step between its points, or null to skip the check of a series that is sparse by design. */
export type ChartCadence = Readonly<Record<string, string | null>>;

/** Judges the series of a valid chart by the law of coverage. */
export function checkChartCoverage(spec: ChartSpec, rows: readonly ChartRow[], cadence: ChartCadence = {}): ChartCoverage {
  const series = toPlottedSeries(spec, rows);
  const verdicts = judgeCoverage(series).map((verdict, at) => {
    const { key, label } = series[at]!;
    const given = Object.hasOwn(cadence, label) ? cadence[label] : Object.hasOwn(cadence, key) ? cadence[key] : undefined;
    return given === undefined ? verdict : given === null ? null : judgeByCadence(series[at]!, given);
  });
  const ofKind = (kind: CoverageVerdict["kind"]): PlottedSeries[] => series.filter((_, at) => verdicts[at]?.kind === kind);
  return {
    low: verdicts.flatMap((verdict, at) => (verdict?.kind === "low" ? [toLowCoverage(series[at]!.label, verdict)] : [])),
    unknown: ofKind("unknown").map(({ label, hasValue }) => ({ axes: 0, label, observed: hasValue.filter(Boolean).length })),
  };
}

/** The series of a chart along time. Empty when its x axis does not consist of ISO times. */
function toPlottedSeries(spec: ChartSpec, rows: readonly ChartRow[]): (PlottedSeries & { readonly key: string })[] {
  if (spec.type === "histogram" || spec.type === "heatmap" || spec.xAxis?.type === "number") return [];
  const places = rows.map((row) => toWallClock(row[spec.xKey]));
  if (places.length === 0 || !places.every((place) => place !== null)) return [];
  const closing: ChartSeries[] = spec.ohlc === undefined ? [] : [{ key: spec.ohlc.closeKey }];
  return [...spec.series, ...closing].map(({ key, label, type = spec.type }) => ({
    key,
    label: label || key,
    places,
    hasValue: rows.map((row) => (row[key] ?? null) !== null),
    markers: type === "scatter",
  }));
}

const ISO_TIME =
  /^(?<year>\d{4})-(?<month>\d{2})(?:-(?<day>\d{2})(?:[T ](?<hour>\d{2}):(?<minute>\d{2})(?::(?<second>\d{2})(?:\.(?<fraction>\d{1,9}))?)?(?:Z|[+-]\d{2}:?\d{2})?)?)?$/;

/** An ISO time as milliseconds since 1970 on its own wall clock, to the microsecond; null for anything else. */
function toWallClock(value: unknown): number | null {
  const found = typeof value === "string" ? ISO_TIME.exec(value)?.groups : undefined;
  if (found === undefined) return null;
  const { year = "", month = "", day = "1", hour = "0", minute = "0", second = "0", fraction = "" } = found;
  const midnight = new Date(0).setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  const date = new Date(midnight);
  const exists = date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day) && Number(year) > 0;
  if (!exists || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null;
  const seconds = (Number(hour) * 60 + Number(minute)) * 60 + Number(second);
  return midnight + seconds * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6)) / 1000;
}

function toLowCoverage(label: string, { observed, expected, against, gap: [start, end] }: CoverageVerdict): LowCoverage {
  return {
    axes: 0,
    label,
    observed,
    expected,
    coverage: observed / expected,
    against,
    largestGap: describeDuration(end - start),
    gapStart: toIsoText(start),
    gapEnd: toIsoText(end),
  };
}

/** A duration as short text: `36h`, `12D`. */
function describeDuration(milliseconds: number): string {
  const round = (number: number): string => String(Number(number.toPrecision(4)));
  const sizes = { D: DAY, h: DAY / 24, min: DAY / 1440 };
  for (const [unit, size] of Object.entries(sizes))
    if (milliseconds >= 2 * size || (unit === "D" && milliseconds === size)) return `${round(milliseconds / size)}${unit}`;
  return `${round(milliseconds / 1000)}s`;
}

function toIsoText(milliseconds: number): string {
  return new Date(Math.floor(milliseconds)).toISOString().replace(/(?:\.000)?Z$/, "");
}
