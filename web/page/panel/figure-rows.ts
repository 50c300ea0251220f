import type { ChartCell } from "../../../src/protocol/chart-spec.ts";
import type { FigureAxes, FigureAxis, FigureSeries, FigureValue } from "../../../src/protocol/figure.ts";
import { createTickLabels, toPlaceText } from "../../../src/protocol/figure-text.ts";
import { texts } from "../../texts.ts";
import type { ArtifactData } from "../answer/use-artifact-data.ts";
import { columnsOf } from "../../charts/columns-of.ts";

export interface NumberTable {
  readonly title: string;
  readonly columns: readonly { readonly key: string; readonly label: string }[];
  readonly rows: readonly Readonly<Record<string, ChartCell>>[];
}

/** The numbers behind a picture or chart as tables: one for a chart, one for each series of a figure. */
export function toNumberTables(artifact: ArtifactData, title = ""): NumberTable[] {
  if (artifact.kind === "chart") return [{ title, columns: columnsOf(artifact.spec, artifact.data), rows: artifact.data }];
  return (artifact.figure?.axes ?? []).flatMap((axes) => axes.series.map((series, index) => toTable(axes, series, index)));
}

/** A column with its cells. */
interface Column {
  readonly key: string;
  readonly label: string;
  readonly cells: readonly ChartCell[];
}

function toTable(axes: FigureAxes, series: FigureSeries, index: number): NumberTable {
  const title = [axes.title, series.label ?? texts.panel.seriesOf(series.type, index + 1)].filter(Boolean).join(" · ");
  const columns = series.type === "heatmap" ? heatColumns(axes, series) : pointColumns(axes, series);
  const rows = Array.from({ length: columns[0]?.cells.length ?? 0 }, (_row, at) =>
    Object.fromEntries(columns.map(({ key, cells }) => [key, cells[at] ?? null])),
  );
  return { title, columns: columns.map(({ key, label }) => ({ key, label })), rows };
}

/** One row for each point, bar, slice or box. */
function pointColumns({ x, y }: FigureAxes, series: FigureSeries): Column[] {
  const [xName, yName] = [x.label || texts.panel.axis.x, y.label || texts.panel.axis.y];
  const isLying = series.type === "barh" || series.orientation === "horizontal";
  const [across, along] = isLying ? [y, x] : [x, y];
  if (series.type === "pie") return [sliceColumn(series, xName), ...valueColumns(series, "y", { scale: "linear" }, yName)];
  return [
    ...valueColumns(series, "x", x, xName),
    ...(series.labels ? [{ key: "name", label: texts.panel.name, cells: series.labels }] : []),
    ...valueColumns(series, "y", y, yName),
    ...errorColumns(series, "y", y, yName),
    ...errorColumns(series, "x", x, xName),
    ...listColumn("baseline", texts.panel.from, series.baseline, along),
    ...listColumn("edge", texts.panel.to, series.edges?.slice(1) as FigureValue[] | undefined, across),
    ...(series.type === "scatter" ? listColumn("value", texts.panel.axis.value, series.z?.[0], { scale: "linear" }) : []),
    ...(series.type === "box" && series.z
      ? [{ key: "outliers", label: texts.panel.outliers, cells: series.z.map((values) => values.join(", ")) }]
      : []),
  ];
}

function sliceColumn({ x, labels }: FigureSeries, label: string): Column {
  return { key: "x", label, cells: x.map((_slice, at) => labels?.[at] ?? texts.panel.slice(at + 1)) };
}

/** The places along one axis and beside them their categories or tick labels; or the five numbers of boxes. */
function valueColumns(series: FigureSeries, key: "x" | "y", axis: FigureAxis, label: string): Column[] {
  const values = series[key];
  if (values.some(Array.isArray)) {
    const summaries = values.map((summary) => (Array.isArray(summary) ? summary : []));
    return texts.panel.box.map((name, at) => ({ key: `${key}${at}`, label: name, cells: summaries.map((five) => five[at] ?? null) }));
  }
  const [categories, nanoseconds] = [series[`${key}Categories`], series[`${key}Nanoseconds`]];
  const places = (values as FigureValue[]).map((value, at) => ({ value, category: categories?.[at], nanoseconds: nanoseconds?.[at] }));
  return placeColumns(places, { key, label, axis });
}

type Place = Parameters<typeof toPlaceText>[1];

function placeColumns(places: readonly Place[], { key, label, axis }: { key: string; label: string; axis: FigureAxis }): Column[] {
  const names = places.map(createTickLabels(axis));
  const numbers = { key, label, cells: places.map((place) => toPlaceText(axis, place)) };
  if (names.every((name) => name === null)) return [numbers];
  if (isOnlyNames(axis, places)) return [{ key, label, cells: names }];
  return [numbers, { key: `${key}Label`, label: texts.panel.tickLabel(label), cells: names }];
}

/** Whether the places only count the categories 0, 1, 2, …, so that their names say everything. */
function isOnlyNames({ scale, tickLabels = [] }: FigureAxis, places: readonly Place[]): boolean {
  return (
    scale === "category" &&
    tickLabels.every(({ at }, index) => at === index) &&
    places.every(({ value }) => Number.isInteger(value) && (value as number) < tickLabels.length)
  );
}

function errorColumns(series: FigureSeries, key: "x" | "y", { scale }: FigureAxis, column: string): Column[] {
  const lengths = series[`${key}err`];
  if (!lengths) return [];
  const [lower, upper] = key === "y" ? [series.lolims, series.uplims] : [series.xlolims, series.xuplims];
  const unit = scale === "time" ? ` ${texts.panel.milliseconds}` : "";
  const { limits } = texts.panel;
  const limitAt = (at: number): ChartCell => (lower?.[at] ? (upper?.[at] ? limits.both : limits.lower) : upper?.[at] ? limits.upper : null);
  return [
    { key: `${key}err`, label: `${texts.panel.error(column)}${unit}`, cells: lengths.map(toLength) },
    ...(lower || upper ? [{ key: `${key}limit`, label: texts.panel.limit(column), cells: lengths.map((_length, at) => limitAt(at)) }] : []),
  ];
}

function toLength(length: FigureValue | FigureValue[]): ChartCell {
  return Array.isArray(length) ? length.map(String).join(" … ") : length;
}

function listColumn(key: string, label: string, values: readonly FigureValue[] | undefined, axis: FigureAxis): Column[] {
  return values ? [{ key, label, cells: values.map((value) => toPlaceText(axis, { value })) }] : [];
}

/** One row for each cell of the grid. */
function heatColumns({ x, y }: FigureAxes, { x: columns, y: rows, z = [] }: FigureSeries): Column[] {
  const { axis } = texts.panel;
  const across = z.flatMap((values) => values.map((_value, at) => ({ value: columns[at] as FigureValue })));
  const down = z.flatMap((values, at) => values.map(() => ({ value: rows[at] as FigureValue })));
  return [
    ...placeColumns(across, { key: "x", label: axis.x, axis: x }),
    ...placeColumns(down, { key: "y", label: axis.y, axis: y }),
    { key: "value", label: axis.value, cells: z.flat() },
  ];
}
