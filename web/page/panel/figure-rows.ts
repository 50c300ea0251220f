import type { ArtifactEnvelope } from "../../../src/protocol/artifact.ts";
import type { ChartCell } from "../../../src/protocol/chart-spec.ts";
import type { FigureAxes, FigureSeries } from "../../../src/protocol/figure.ts";
import { texts } from "../../texts.ts";
import { columnsOf } from "../../charts/columns-of.ts";

export interface NumberTable {
  readonly title: string;
  readonly columns: readonly { readonly key: string; readonly label: string }[];
  readonly rows: readonly Readonly<Record<string, ChartCell>>[];
}

/** The numbers behind a picture or chart as tables: one for a chart, one for each series of a figure. */
export function toNumberTables(artifact: ArtifactEnvelope): NumberTable[] {
  if (artifact.kind === "chart")
    return [{ title: artifact.title ?? "", columns: columnsOf(artifact.spec, artifact.data), rows: artifact.data }];
  return (artifact.figure?.axes ?? []).flatMap((axes) => axes.series.map((series, index) => toTable(axes, series, index)));
}

function toTable(axes: FigureAxes, series: FigureSeries, index: number): NumberTable {
  const title = [axes.title, series.label ?? texts.panel.seriesOf(series.type, index + 1)].filter(Boolean).join(" · ");
  if (series.type === "heatmap") return heatTable(title, series);
  const [x, y] = [axes.xLabel || texts.panel.axis.x, axes.yLabel || texts.panel.axis.y];
  const columns = [{ key: "x", label: x }, ...valueColumns("y", y, series.y)];
  if (series.x.some(Array.isArray)) columns.splice(0, 1, ...valueColumns("x", x, series.x));
  if (series.yerr) columns.push({ key: "yerr", label: texts.panel.error(y) });
  if (series.xerr) columns.push({ key: "xerr", label: texts.panel.error(x) });
  if (series.baseline) columns.push({ key: "baseline", label: texts.panel.from });
  if (series.edges) columns.push({ key: "edge", label: texts.panel.to });
  const shades = series.type === "scatter" ? series.z?.[0] : undefined;
  if (shades) columns.push({ key: "value", label: texts.panel.axis.value });
  const outliers = series.type === "box" ? series.z : undefined;
  if (outliers) columns.push({ key: "outliers", label: texts.panel.outliers });
  const rows = series.x.map((_value, at) => ({
    ...spread("x", series.x[at] ?? null),
    ...spread("y", series.y[at] ?? null),
    ...(series.yerr ? { yerr: flat(series.yerr[at]) } : {}),
    ...(series.xerr ? { xerr: flat(series.xerr[at]) } : {}),
    ...(series.baseline ? { baseline: series.baseline[at] ?? null } : {}),
    ...(series.edges ? { edge: flat(series.edges[at + 1]) } : {}),
    ...(shades ? { value: shades[at] ?? null } : {}),
    ...(outliers ? { outliers: (outliers[at] ?? []).join(", ") } : {}),
  }));
  return { title, columns, rows };
}

function valueColumns(key: string, label: string, values: FigureSeries["y"]): { key: string; label: string }[] {
  return values.some(Array.isArray) ? texts.panel.box.map((label, at) => ({ key: `${key}${at}`, label })) : [{ key, label }];
}

function spread(key: string, value: FigureSeries["y"][number]): Record<string, ChartCell> {
  return Array.isArray(value)
    ? Object.fromEntries(texts.panel.box.map((_label, at) => [`${key}${at}`, value[at] ?? null]))
    : { [key]: value };
}

function flat(value: ChartCell | (ChartCell | null)[] | undefined): ChartCell {
  return Array.isArray(value) ? value.map(String).join(" … ") : (value ?? null);
}

function heatTable(title: string, { x, y, z = [] }: FigureSeries): NumberTable {
  const rows = z.flatMap((values, row) => values.map((value, column) => ({ x: flat(x[column]), y: flat(y[row]), value })));
  return { title, columns: Object.entries(texts.panel.axis).map(([key, label]) => ({ key, label })), rows };
}
