import type { FigureAxes, FigureSeries } from "../protocol/figure.ts";
import type { Coverage } from "../protocol/coverage-event.ts";
import { readFigure } from "../protocol/read-figure.ts";
import type { CellArtifact } from "../protocol/outcome.ts";
import { adviseOnCoverage, describeSparseSeries, describeUnnamedCoverage } from "../prompts/interpreter-tools.ts";
import { findUnnamedCoverage, type DrawnSeries, type Drawing } from "./find-unnamed-coverage.ts";

/** A flaw of a figure or chart that the model must repair. If it is not repaired, it becomes a gap with this code. */
export interface Finding {
  readonly code: "low_coverage" | "unnamed_coverage";
  /** A sentence, also shown to the user. */
  readonly detail: string;
  /** What the model can do. */
  readonly advice?: string;
}

/** Finds the flaws of what was drawn in the diagnostics of a cell or chart. */
export function toFindings(diagnostics: Readonly<Record<string, unknown>>, drawn: "figure" | "chart"): Finding[] {
  const sparse = toList(diagnostics["lowCoverage"]);
  return sparse.length === 0 ? [] : [{ code: "low_coverage", detail: describeSparseSeries(drawn, sparse) }];
}

type Drawn =
  | Pick<Extract<CellArtifact, { kind: "chart" }>, "kind" | "title" | "spec" | "data">
  | Pick<Extract<CellArtifact, { kind: "image" }>, "kind" | "title" | "figure">;

/** Finds figures and charts that draw changes of coverage without naming them. `derived`: the coverage that the cells of the turn noted. */
export function findHiddenCoverage(artifacts: readonly Drawn[], derived: readonly Coverage[]): Finding[] {
  return artifacts.flatMap((artifact): Finding[] => {
    const hidden = findUnnamedCoverage(toDrawing(artifact), derived);
    if (hidden.length === 0) return [];
    const drawn = artifact.kind === "chart" ? "chart" : "figure";
    return [{ code: "unnamed_coverage", detail: describeUnnamedCoverage(drawn, hidden), advice: adviseOnCoverage(drawn, hidden) }];
  });
}

export function describeFindings(findings: readonly Finding[]): string {
  return findings.map(({ detail, advice }) => (advice === undefined ? detail : `${detail} ${advice}`)).join(" ");
}

/** What a reader of the figure or chart sees. */
export function toDrawing(artifact: Drawn): Drawing {
  return artifact.kind === "chart" ? fromChart(artifact) : fromFigure(artifact);
}

function fromChart({ title, spec, data }: Extract<Drawn, { kind: "chart" }>): Drawing {
  const { series, xAxis, yAxis, yAxisRight, referenceLines = [], referenceAreas = [], xKey } = spec;
  const named = [xAxis, yAxis, yAxisRight, ...referenceLines, ...referenceAreas].map((one) => one?.label);
  const places = xAxis?.type === "time" ? [] : data.map((row) => row[xKey]);
  const texts = [title, ...named, ...series.map(({ key, label }) => label ?? key), ...places];
  return {
    texts: texts.filter((text) => typeof text === "string"),
    series: series.map(({ key, label = key }) => ({ label, values: data.map((row) => toNumber(row[key])) })),
  };
}

function fromFigure({ title, figure }: Extract<Drawn, { kind: "image" }>): Drawing {
  if (figure === undefined) return { texts: [], series: [] };
  const { axes, ...own } = readFigure(figure);
  const ofAxes = axes.flatMap(({ title: heading, x, y, series }) => [
    ...[heading, x.label, y.label],
    ...[x, y].flatMap(({ tickLabels = [] }) => tickLabels.map(({ text }) => text)),
    ...series.flatMap(({ label, labels = [] }) => [label, ...labels]),
  ]);
  const texts = [title, own.title, own.xLabel, own.yLabel, ...(own.texts ?? []), ...ofAxes];
  return { texts: texts.filter((text) => typeof text === "string"), series: axes.flatMap(fromAxes) };
}

/** Kinds of series whose points can be changes. */
const COMPARED: ReadonlySet<string> = new Set(["line", "step", "scatter", "stem", "bar", "barh", "errorbar", "area"]);

function fromAxes({ series }: FigureAxes): DrawnSeries[] {
  return series
    .filter(({ type }) => COMPARED.has(type))
    .flatMap((one, at): DrawnSeries[] => {
      const label = one.label ?? `${one.type} ${at + 1}`;
      const values = listAmounts(one).map(toNumber);
      const stacked = one.type === "area" && one.baseline !== undefined;
      const heights = values.map((value, place) => {
        const base = toNumber(one.baseline?.[place]);
        return value === null || base === null ? null : value - base;
      });
      return [{ label, values }, ...(stacked ? [{ label, values: heights }] : [])];
    });
}

function listAmounts({ type, orientation, x, y }: FigureSeries): FigureSeries["x"] {
  return type === "barh" || orientation === "horizontal" ? x : y;
}

function toNumber(value: unknown): number | null {
  const number = typeof value === "string" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : null;
}

/** Diagnostics come from a sandbox: anything but a list counts as empty. */
function toList(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? (value as Record<string, unknown>[]) : [];
}
