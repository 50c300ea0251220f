import type { z } from "zod";
import { type ChartRow, type ChartSpec, chartRowsSchema, chartSpecSchema } from "./chart-spec.ts";

/** A problem of a chart. `path` is like `series[0].key` or `data[3].price`. */
export interface ChartIssue {
  readonly path: string;
  readonly message: string;
}

/** Returns all problems of a chart. Without problems, both values match their schemas. Python has the same rules, tested with the same corpus. */
export function checkChart(spec: unknown, data: unknown): ChartIssue[] {
  const parsedSpec = chartSpecSchema.safeParse(spec);
  const parsedRows = chartRowsSchema.safeParse(data);
  const issues = [...toIssues(parsedSpec.error?.issues, ""), ...toIssues(parsedRows.error?.issues, "data")];
  if (!parsedSpec.success || !parsedRows.success) return issues;
  return [...checkParts(parsedSpec.data), ...checkRows(parsedSpec.data, parsedRows.data)];
}

function toIssues(issues: readonly z.core.$ZodIssue[] | undefined, root: string): ChartIssue[] {
  return (issues ?? []).flatMap((issue) => {
    const path = issue.path.reduce<string>(joinPath, root);
    if (issue.code !== "unrecognized_keys") return [{ path, message: issue.message }];
    return issue.keys.map((key) => ({ path: joinPath(path, key), message: "is not a known key" }));
  });
}

function joinPath(path: string, part: PropertyKey): string {
  if (typeof part === "number") return `${path}[${part}]`;
  return path === "" ? String(part) : `${path}.${String(part)}`;
}

/** Checks the parts of a spec against each other. */
function checkParts(spec: ChartSpec): ChartIssue[] {
  return [...checkKind(spec), ...checkSeries(spec), ...checkMeasures(spec), ...checkReferences(spec), ...checkAxes(spec)];
}

function checkKind(spec: ChartSpec): ChartIssue[] {
  const issues: ChartIssue[] = [];
  if (spec.type === "candlestick" && !spec.ohlc) issues.push({ path: "ohlc", message: "a candlestick chart needs ohlc" });
  if (spec.type !== "candlestick" && spec.ohlc) issues.push({ path: "ohlc", message: "only a candlestick chart has ohlc" });
  for (const name of ["yKey", "valueKey"] as const) {
    if (spec.type === "heatmap" && !spec[name]) issues.push({ path: name, message: `a heatmap needs ${name}` });
    if (spec.type !== "heatmap" && spec[name]) issues.push({ path: name, message: `only a heatmap has ${name}` });
  }
  if (spec.type !== "heatmap" && spec.type !== "candlestick" && spec.series.length === 0) {
    issues.push({ path: "series", message: "at least one series is needed" });
  }
  if (spec.stacked && !["bar", "area", "composed", "histogram"].includes(spec.type)) {
    issues.push({ path: "stacked", message: "only bar, area, composed and histogram charts can be stacked" });
  }
  return issues;
}

function checkSeries(spec: ChartSpec): ChartIssue[] {
  const issues: ChartIssue[] = [];
  const keys = new Set<string>();
  for (const [index, { key, type }] of spec.series.entries()) {
    if (keys.has(key)) issues.push({ path: `series[${index}].key`, message: `${key} is used twice` });
    keys.add(key);
    if (type && spec.type !== "composed" && type !== spec.type) {
      issues.push({ path: `series[${index}].type`, message: "only a composed chart mixes types" });
    }
  }
  return issues;
}

function checkMeasures(spec: ChartSpec): ChartIssue[] {
  const expected = spec.expectedMeasures;
  if (!expected) return [];
  const issues: ChartIssue[] = [];
  for (const [index, { satisfies }] of spec.series.entries()) {
    if (satisfies !== undefined && !expected.includes(satisfies)) {
      issues.push({ path: `series[${index}].satisfies`, message: `${satisfies} is not one of the expected measures` });
    }
  }
  const shown = new Set(spec.series.flatMap(({ key, label, satisfies }) => [key, label, satisfies]));
  for (const [index, measure] of expected.entries()) {
    if (!shown.has(measure)) issues.push({ path: `expectedMeasures[${index}]`, message: `no series shows ${measure}` });
  }
  return issues;
}

function checkReferences(spec: ChartSpec): ChartIssue[] {
  return (spec.referenceAreas ?? []).flatMap(({ x1, x2, y1, y2 }, index) => {
    const complete = (x1 === undefined) === (x2 === undefined) && (y1 === undefined) === (y2 === undefined);
    const bounded = x1 !== undefined || y1 !== undefined;
    return complete && bounded ? [] : [{ path: `referenceAreas[${index}]`, message: "needs x1 and x2, or y1 and y2, or all four" }];
  });
}

function checkAxes(spec: ChartSpec): ChartIssue[] {
  return (["xAxis", "yAxis", "yAxisRight"] as const).flatMap((name) => {
    const axis = spec[name];
    const issues: ChartIssue[] = [];
    if (axis?.valueScale && axis.format !== "percent") issues.push({ path: `${name}.valueScale`, message: "only with format percent" });
    if (axis?.currency && axis.format !== "currency") issues.push({ path: `${name}.currency`, message: "only with format currency" });
    return issues;
  });
}

/** Checks a spec against its rows. */
function checkRows(spec: ChartSpec, rows: ChartRow[]): ChartIssue[] {
  if (rows.length === 0) return [{ path: "data", message: "there are no rows" }];
  const names = new Set(rows.flatMap((row) => Object.keys(row)));
  const columns = { names, text: [...names].join(", ") };
  return [...checkPositions(spec, rows, columns), ...numericKeys(spec).flatMap((named) => checkNumbers(named, rows, columns))];
}

/** The columns of the rows. `text` lists them, once for all messages. */
interface Columns {
  readonly names: ReadonlySet<string>;
  readonly text: string;
}

interface NamedKey {
  readonly path: string;
  readonly key: string;
}

function checkPositions(spec: ChartSpec, rows: ChartRow[], columns: Columns): ChartIssue[] {
  const named = [{ path: "xKey", key: spec.xKey }, ...(spec.yKey ? [{ path: "yKey", key: spec.yKey }] : [])];
  return named.flatMap(({ path, key }) => {
    if (!columns.names.has(key)) return [missing(path, key, columns)];
    const type = path === "xKey" ? spec.xAxis?.type : spec.yAxis?.type;
    const bad = rows.findIndex((row) => !isPosition(row[key] ?? null, type));
    return bad < 0
      ? []
      : [{ path: `data[${bad}].${key}`, message: `is not a valid position on ${type === undefined ? "an" : `a ${type}`} axis` }];
  });
}

function isPosition(cell: string | number | null, type: string | undefined): boolean {
  if (cell === null) return false;
  if (type === "number") return typeof cell === "number";
  if (type === "time") return typeof cell === "string" && isoTime.test(cell);
  return true;
}

const isoTime = /^\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?)?$/;

function numericKeys(spec: ChartSpec): NamedKey[] {
  return [
    ...spec.series.flatMap(({ key, errorKey }, index) => [
      { path: `series[${index}].key`, key },
      ...(errorKey ? [{ path: `series[${index}].errorKey`, key: errorKey }] : []),
    ]),
    ...(spec.valueKey ? [{ path: "valueKey", key: spec.valueKey }] : []),
    ...Object.entries(spec.ohlc ?? {}).map(([name, key]) => ({ path: `ohlc.${name}`, key })),
  ];
}

function checkNumbers({ path, key }: NamedKey, rows: ChartRow[], columns: Columns): ChartIssue[] {
  if (!columns.names.has(key)) return [missing(path, key, columns)];
  const text = rows.findIndex((row) => typeof row[key] === "string");
  if (text >= 0) return [{ path: `data[${text}].${key}`, message: "must be a number or null" }];
  return rows.every((row) => (row[key] ?? null) === null) ? [{ path, message: `${key} is null in every row` }] : [];
}

function missing(path: string, key: string, columns: Columns): ChartIssue {
  return { path, message: `${key} is not in the data; the columns are ${columns.text}` };
}
