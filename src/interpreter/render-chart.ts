import { z } from "zod";
import { toStoredBytes, type ArtifactStore } from "../artifacts/artifact-store.ts";
import { appendToPath, quote } from "../errors/argument-path.ts";
import { nearestName } from "../errors/nearest-name.ts";
import { parseArguments } from "../errors/parse-arguments.ts";
import { SluiceError } from "../errors/sluice-error.ts";
import { createToolError, receivedType, type ToolError, type ToolErrorDetail } from "../errors/tool-error.ts";
import type { EvidenceItem, EvidenceStore } from "../evidence/evidence-store.ts";
import { readPath, rowsAt } from "../evidence/rows-at.ts";
import { interpreterHints, interpreterParameters, toDiagnosticNotes } from "../prompts/interpreter-tools.ts";
import type { ChartArtifact } from "../protocol/artifact.ts";
import { chartSpecSchema, maxChartRows, type ChartRow, type ChartSpec } from "../protocol/chart-spec.ts";
import { checkChart } from "../protocol/check-chart.ts";
import { checkChartCoverage } from "../protocol/check-chart-coverage.ts";
import type { Coverage } from "../protocol/coverage-event.ts";
import { cadencePattern } from "../protocol/judge-by-cadence.ts";
import { clipText } from "../text/clip-text.ts";
import { toFailureToolError } from "./code-interpreter.ts";
import { findHiddenCoverage, toFindings, type Finding } from "./findings.ts";

const TOOL = "render_chart";
/** An error lists this many names and counts the rest. */
const MAX_LISTED_ALIASES = 20;
const MAX_LISTED_COLUMNS = 40;

const descriptions = interpreterParameters.render_chart;

export const renderChartCallSchema = z.strictObject({
  alias: z.string().describe(descriptions.alias),
  spec: chartSpecSchema.describe(descriptions.spec),
  title: z.string().max(500).optional().describe(descriptions.title),
  path: z.string().max(500).optional().describe(descriptions.path),
  cadence: z.record(z.string(), z.string().regex(cadencePattern).nullable()).optional().describe(descriptions.cadence),
});

/** Reads rows that the host does not parse itself: files, and formats that need Python. */
export type ReadChartRows = (
  item: EvidenceItem,
  options: { readonly maxRows: number; readonly signal?: AbortSignal | undefined },
) => Promise<
  | { readonly ok: true; readonly rows: readonly Readonly<Record<string, unknown>>[]; readonly total: number }
  | { readonly ok: false; readonly toolError: ToolError }
>;

/** `findings`: flaws that the model must repair. `notes`: what the model should know about the coverage of the series. */
export type ChartAnswer = { ok: true; artifact: ChartArtifact; findings: readonly Finding[]; notes: readonly string[] } | ChartRefusal;

type ChartRefusal = { ok: false; toolError: ToolError };

export interface RenderChartOptions {
  readonly input: unknown;
  readonly evidence: EvidenceStore;
  readonly artifacts: ArtifactStore;
  /** Without it, only JSON can be drawn. */
  readonly readRows?: ReadChartRows | undefined;
  /** What the cells of the turn noted about coverage. */
  readonly coverage?: readonly Coverage[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Draws a chart from the rows of one alias, by the same rules as `render_chart` in Python. Only `readRows` may need a sandbox. Rejects only with
 * `signal.reason`.
 */
export async function renderChart(options: RenderChartOptions): Promise<ChartAnswer> {
  const { input, evidence, artifacts, coverage = [] } = options;
  const refusal = { tool: TOOL, lead: "Nothing was drawn", code: "CHART_INVALID", examples: [example] } as const;
  const parsed = parseArguments(renderChartCallSchema, input, refusal);
  if (!parsed.ok) return parsed;
  const { alias, spec, title, path, cadence = {} } = parsed.data;
  const item = evidence.get(alias);
  if (item === null) return unknownAlias(alias, evidence.aliases());
  const found = await findRows(item, path, options);
  if (!found.ok) return found;
  const columns = [...new Set(found.rows.slice(0, 100).flatMap((row) => Object.keys(row)))];
  const nested = nestedColumns(found.rows, spec);
  if (nested.length > 0) return refuseToDraw(alias, "the spec names columns that hold more than one value per row", columns, nested);
  const rows = pickColumns(found.rows, spec);
  if (checkChart(spec, rows).length > 0) {
    const details = toDetails(checkChartWithAllColumns(found.rows, spec), spec, found.rows);
    return refuseToDraw(alias, "the spec does not match the rows", columns, details);
  }
  const unknown = Object.keys(cadence).filter((name) => !spec.series.some(({ key, label }) => name === key || name === label));
  if (unknown.length > 0) return refuseCadence(alias, unknown, spec);
  const { low, unknown: unjudged } = checkChartCoverage(spec, rows, cadence);
  const diagnostics = { ...(low.length > 0 && { lowCoverage: low }), ...(unjudged.length > 0 && { coverageUnknown: unjudged }) };
  const bytes = new TextEncoder().encode(JSON.stringify({ spec, data: rows }));
  try {
    const stored = await artifacts.put({ bytes, type: "json" });
    return {
      ok: true,
      artifact: { schemaVersion: 1, kind: "chart", ...toStoredBytes(stored), spec, data: rows, ...(title === undefined ? {} : { title }) },
      findings: [...toFindings(diagnostics, "chart"), ...findHiddenCoverage([{ kind: "chart", title, spec, data: rows }], coverage)],
      notes: toDiagnosticNotes(diagnostics),
    };
  } catch (error) {
    return { ok: false, toolError: toFailureToolError(error, TOOL) };
  }
}

/** Finds the rows to draw: at `path`, or where the evidence has its rows. */
async function findRows(
  item: EvidenceItem,
  path: string | undefined,
  { evidence, readRows, signal }: RenderChartOptions,
): Promise<{ ok: true; rows: readonly Record<string, unknown>[] } | ChartRefusal> {
  const { alias, shape } = item;
  const tooMany = (rows: number): string => `it has ${rows} rows, a chart has at most ${maxChartRows}: aggregate first`;
  let read: Awaited<ReturnType<ReadChartRows>> | null = null;
  if (item.file !== undefined || item.format !== "json") {
    if (readRows === undefined) return refuseToDraw(alias, `it is ${item.format}, not JSON rows`, shape.columns);
    read = await readRows(item, { maxRows: maxChartRows, signal });
    if (!read.ok) return read;
    if (read.total > read.rows.length) return refuseToDraw(alias, tooMany(read.total), Object.keys(read.rows[0] ?? {}));
  } else if (path === undefined && (shape.rows ?? 0) > maxChartRows) return refuseToDraw(alias, tooMany(shape.rows!), shape.columns);
  const query = { path: path ?? (read === null ? shape.path : []), maxRows: maxChartRows };
  const found = read === null ? await evidence.rowsAt(alias, query).catch(toSluiceError) : rowsAt(read.rows, query);
  if (found instanceof SluiceError) return refuseToDraw(alias, found.message.replace(/\.$/, ""), shape.columns);
  if (!found.ok) {
    const below = found.at === "" ? "" : ` below ${found.at}`;
    return refuseToDraw(alias, `there is nothing at the path ${JSON.stringify(path)}${below}`, found.keys);
  }
  if (found.rows === null) return refuseToDraw(alias, "its rows are not a list of flat records", found.rootKeys);
  if (found.total <= maxChartRows) return { ok: true, rows: found.rows };
  return refuseToDraw(alias, tooMany(found.total), [...new Set(found.rows.slice(0, 100).flatMap((row) => Object.keys(row)))]);
}

function toSluiceError(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error;
  throw error;
}

/** Reports each column with lists or objects once, at the first row that has one. */
function nestedColumns(rows: readonly Record<string, unknown>[], spec: ChartSpec): ToolErrorDetail[] {
  return namedColumns(spec).flatMap((key) => {
    const at = rows.findIndex((row) => Object.hasOwn(row, key) && typeof row[key] === "object" && row[key] !== null);
    if (at < 0) return [];
    const issue = `${key} contains lists or objects; a chart can show text, numbers, true, false and null`;
    return [{ path: appendToPath(`data[${at}]`, key), issue, received_type: receivedType(rows[at]![key]) }];
  });
}

/** Checks the chart with all columns of the rows, so that the messages list every available column. Nested values in other columns do not count. */
function checkChartWithAllColumns(rows: readonly Record<string, unknown>[], spec: ChartSpec): ReturnType<typeof checkChart> {
  const named = new Set(namedColumns(spec));
  const isKept = (key: string, value: unknown): boolean => named.has(key) || typeof value !== "object";
  return checkChart(
    spec,
    rows.map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, isKept(key, value) ? value : null]))),
  );
}

/** Keeps only the columns that the chart names. */
function pickColumns(rows: readonly Record<string, unknown>[], spec: ChartSpec): ChartRow[] {
  const keys = namedColumns(spec);
  return rows.map((row) => Object.fromEntries(keys.filter((key) => Object.hasOwn(row, key)).map((key) => [key, row[key]]))) as ChartRow[];
}

function namedColumns(spec: ChartSpec): string[] {
  const ofSeries = spec.series.flatMap(({ key, errorKey }) => [key, errorKey]);
  const keys = [spec.xKey, spec.yKey, spec.valueKey, ...Object.values(spec.ohlc ?? {}), ...ofSeries];
  return [...new Set(keys.filter((key) => key !== undefined))];
}

/** Turns faults into details. The path of a fault in the spec is relative to the call; that of a fault in the rows starts with `data`. */
function toDetails(faults: readonly { path: string; message: string }[], spec: ChartSpec, data: readonly unknown[]): ToolErrorDetail[] {
  return faults.map(({ path, message }) => {
    const isInData = /^data(?:\[|$)/.test(path);
    const found = readPath(isInData ? { data } : spec, path);
    return { path: isInData ? path : `spec.${path}`, issue: message, received_type: receivedType(found.ok ? found.value : undefined) };
  });
}

const example = {
  alias: "get_price_1",
  spec: { type: "line", xKey: "date", series: [{ key: "price" }], xAxis: { type: "time" } },
  title: "Price by day",
};

function unknownAlias(alias: string, known: readonly string[]): ChartRefusal {
  const near = nearestName(alias, known);
  const meant = near === null ? "" : ` Did you mean ${near}?`;
  const older = known.length > MAX_LISTED_ALIASES ? ` and ${known.length - MAX_LISTED_ALIASES} older ones` : "";
  const listed = known.slice(-MAX_LISTED_ALIASES).join(", ") || "none yet";
  const summary = `No tool output has the alias ${quote(alias)}.${meant} Known aliases: ${listed}${older}.`;
  const details = [{ path: "alias", issue: "is not known", received_type: "string" }];
  return { ok: false, toolError: createToolError({ code: "ALIAS_UNKNOWN", tool: TOOL, summary, details }) };
}

function refuseCadence(alias: string, unknown: readonly string[], { series }: ChartSpec): ChartRefusal {
  const known = series.map(({ key, label }) => quote(label ?? key)).join(", ") || "none";
  const summary = `${alias} was not drawn: cadence names ${unknown.map(quote).join(", ")}, but the series are ${known}.`;
  const details = unknown.map((name) => ({ path: appendToPath("cadence", name), issue: "is not a series", received_type: "string" }));
  const hints = [interpreterHints.knownSeries];
  return { ok: false, toolError: createToolError({ code: "CHART_INVALID", tool: TOOL, summary, details, hints }) };
}

function refuseToDraw(alias: string, why: string, columns: readonly string[], details: ToolErrorDetail[] = []): ChartRefusal {
  const more = columns.length > MAX_LISTED_COLUMNS ? ` and ${columns.length - MAX_LISTED_COLUMNS} more` : "";
  const names = columns.slice(0, MAX_LISTED_COLUMNS).map((name) => clipText(name, 80));
  const available = columns.length === 0 ? "" : ` Available columns: ${names.join(", ")}${more}.`;
  const summary = `${alias} cannot be drawn directly: ${why}.${available}`;
  const hints = [interpreterHints.reshape];
  return { ok: false, toolError: createToolError({ code: "CHART_INVALID", tool: TOOL, summary, details, hints }) };
}
