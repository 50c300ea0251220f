import { z } from "zod";
import type { ArtifactStore } from "../artifacts/artifact-store.ts";
import { appendToPath, quote } from "../errors/argument-path.ts";
import { createToolError, type ToolError, type ToolErrorDetail, receivedType } from "../errors/tool-error.ts";
import { nearestName } from "../errors/nearest-name.ts";
import { parseArguments } from "../errors/parse-arguments.ts";
import { SluiceError } from "../errors/sluice-error.ts";
import type { EvidenceItem, EvidenceStore } from "../evidence/evidence-store.ts";
import { clipText } from "../text/clip-text.ts";
import { readPath, rowsAt } from "../evidence/rows-at.ts";
import type { ChartArtifact } from "../protocol/artifact.ts";
import { chartSpecSchema, maxChartRows, type ChartRow, type ChartSpec } from "../protocol/chart-spec.ts";
import { checkChart } from "../protocol/check-chart.ts";

const TOOL = "render_chart";
/** How many names a refusal lists before it only counts. */
const LISTED = 20;
const SHOWN_COLUMNS = 40;

export const renderChartCallSchema = z.strictObject({
  alias: z.string().describe("The tool output or result whose rows are drawn."),
  spec: chartSpecSchema.describe(
    "type; xKey, the column along x; series, each with the key of its column and optionally label, errorKey, yAxis (left or right) and, in a composed chart, type; xAxis, yAxis and yAxisRight with type (time, category, number), label and format. A heatmap has yKey and valueKey, a candlestick ohlc with openKey, highKey, lowKey and closeKey.",
  ),
  title: z.string().max(500).optional().describe("Stands above the chart."),
  path: z.string().max(500).optional().describe('Where the rows are inside nested data, like "data.items" or "data[0].rows".'),
});

/** Rows of what is not parsed on the host: files, and formats that take Python to read. */
export type ReadChartRows = (
  item: EvidenceItem,
  options: { readonly maxRows: number; readonly signal?: AbortSignal | undefined },
) => Promise<
  | { readonly ok: true; readonly rows: readonly Readonly<Record<string, unknown>>[]; readonly total: number }
  | { readonly ok: false; readonly toolError: ToolError }
>;

export type ChartAnswer = { ok: true; artifact: ChartArtifact } | { ok: false; toolError: ToolError };

export interface RenderChartOptions {
  readonly input: unknown;
  readonly evidence: EvidenceStore;
  readonly artifacts: ArtifactStore;
  /** Without it, only JSON that is kept can be drawn. */
  readonly readRows?: ReadChartRows | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A chart straight from one alias, by the same rules as render_chart in Python. No sandbox is needed but by `readRows`. Rejects with `signal.reason` only. */
export async function renderChart({ input, evidence, artifacts, readRows, signal }: RenderChartOptions): Promise<ChartAnswer> {
  const refusal = { tool: TOOL, lead: "Nothing was drawn", code: "CHART_INVALID", examples: [example] } as const;
  const parsed = parseArguments(renderChartCallSchema, input, refusal);
  if (!parsed.ok) return parsed;
  const { alias, spec, title, path } = parsed.data;
  const item = evidence.get(alias);
  if (item === null) return unknownAlias(alias, evidence.aliases());
  const tooMany = (rows: number): string => `it has ${rows} rows, a chart has at most ${maxChartRows}: aggregate first`;
  let read: Awaited<ReturnType<ReadChartRows>> | null = null;
  if (item.file !== undefined || item.format !== "json") {
    if (readRows === undefined) return reshape(alias, `it is ${item.format}, not JSON rows`, item.shape.columns);
    read = await readRows(item, { maxRows: maxChartRows, signal });
    if (!read.ok) return read;
    if (read.total > read.rows.length) return reshape(alias, tooMany(read.total), Object.keys(read.rows[0] ?? {}));
  } else if (path === undefined && (item.shape.rows ?? 0) > maxChartRows)
    return reshape(alias, tooMany(item.shape.rows!), item.shape.columns);
  const question = { path: path ?? (read === null ? item.shape.path : []), maxRows: maxChartRows };
  const found = read === null ? await evidence.rowsAt(alias, question).catch(unreadable) : rowsAt(read.rows, question);
  if (found instanceof SluiceError) return reshape(alias, found.message.replace(/\.$/, ""), item.shape.columns);
  if (!found.ok)
    return reshape(alias, `there is nothing at the path ${JSON.stringify(path)}${found.at === "" ? "" : ` below ${found.at}`}`, found.keys);
  if (found.rows === null) return reshape(alias, "its rows are not a list of flat records", found.rootKeys);
  const columns = [...new Set(found.rows.slice(0, 100).flatMap((row) => Object.keys(row)))];
  if (found.total > maxChartRows) return reshape(alias, tooMany(found.total), columns);
  const nested = nestedColumns(found.rows, spec);
  if (nested.length > 0) return reshape(alias, "the spec names columns that hold more than one value a row", columns, nested);
  const rows = pickColumns(found.rows, spec);
  const faults = checkChart(spec, rows);
  if (faults.length > 0)
    return reshape(alias, "the spec and its rows do not fit", columns, toDetails(faultsOfAll(found.rows, spec), spec, found.rows));
  const bytes = new TextEncoder().encode(JSON.stringify({ spec, data: rows }));
  try {
    const { url, contentHash } = await artifacts.put({ bytes, type: "json" });
    const named = title === undefined ? {} : { title };
    return { ok: true, artifact: { schemaVersion: 1, kind: "chart", url, spec, data: rows, ...named, contentHash } };
  } catch (error) {
    return { ok: false, toolError: notKept(error) };
  }
}

function unreadable(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error;
  throw error;
}

/** Once a column, at the first row where it is so. */
function nestedColumns(rows: readonly Record<string, unknown>[], spec: ChartSpec): ToolErrorDetail[] {
  return namedColumns(spec).flatMap((key) => {
    const at = rows.findIndex((row) => Object.hasOwn(row, key) && typeof row[key] === "object" && row[key] !== null);
    if (at < 0) return [];
    const issue = `${key} holds lists or objects; a chart holds text, numbers, true, false and null`;
    return [{ path: appendToPath(`data[${at}]`, key), issue, received_type: receivedType(rows[at]![key]) }];
  });
}

/** The same faults, said with every column that is there. What a chart cannot hold counts only where the spec names it. */
function faultsOfAll(rows: readonly Record<string, unknown>[], spec: ChartSpec): ReturnType<typeof checkChart> {
  const named = new Set(namedColumns(spec));
  const isKept = (key: string, value: unknown): boolean => named.has(key) || typeof value !== "object";
  return checkChart(
    spec,
    rows.map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, isKept(key, value) ? value : null]))),
  );
}

/** Only what the chart names travels with it. */
function pickColumns(rows: readonly Record<string, unknown>[], spec: ChartSpec): ChartRow[] {
  const keys = namedColumns(spec);
  return rows.map((row) => Object.fromEntries(keys.filter((key) => Object.hasOwn(row, key)).map((key) => [key, row[key]]))) as ChartRow[];
}

function namedColumns(spec: ChartSpec): string[] {
  const named = [
    spec.xKey,
    spec.yKey,
    spec.valueKey,
    ...Object.values(spec.ohlc ?? {}),
    ...spec.series.flatMap(({ key, errorKey }) => [key, errorKey]),
  ];
  return [...new Set(named.filter((key) => key !== undefined))];
}

/** Faults of the spec are at its place in the call; those of the rows in the data. */
function toDetails(issues: readonly { path: string; message: string }[], spec: ChartSpec, data: readonly unknown[]): ToolErrorDetail[] {
  return issues.map(({ path, message }) => {
    const isOfData = /^data(?:\[|$)/.test(path);
    const found = readPath(isOfData ? { data } : spec, path);
    return { path: isOfData ? path : `spec.${path}`, issue: message, received_type: receivedType(found.ok ? found.value : undefined) };
  });
}

const example = {
  alias: "get_price_1",
  spec: { type: "line", xKey: "date", series: [{ key: "price" }], xAxis: { type: "time" } },
  title: "Price by day",
};

function notKept(error: unknown): ToolError {
  const known = error instanceof SluiceError && error.code === "STORAGE_UNAVAILABLE";
  const summary = error instanceof Error ? error.message : String(error);
  const hints = error instanceof SluiceError && error.hint ? [error.hint] : [];
  return createToolError({ code: known ? "STORAGE_UNAVAILABLE" : "INTERNAL_ERROR", tool: TOOL, summary, hints });
}

function unknownAlias(alias: string, known: readonly string[]): ChartAnswer {
  const near = nearestName(alias, known);
  const meant = near === null ? "" : ` Did you mean ${near}?`;
  const older = known.length > LISTED ? ` and ${known.length - LISTED} older ones` : "";
  const there = known.slice(-LISTED).join(", ") || "none yet";
  const summary = `No tool output has the alias ${quote(alias)}.${meant} There are: ${there}${older}.`;
  const details = [{ path: "alias", issue: "is not known", received_type: "string" }];
  return { ok: false, toolError: createToolError({ code: "ALIAS_UNKNOWN", tool: TOOL, summary, details }) };
}

function reshape(alias: string, why: string, columns: readonly string[], details: ToolErrorDetail[] = []): ChartAnswer {
  const more = columns.length > SHOWN_COLUMNS ? ` and ${columns.length - SHOWN_COLUMNS} more` : "";
  const names = columns.slice(0, SHOWN_COLUMNS).map((name) => clipText(name, 80));
  const there = columns.length === 0 ? "" : ` The columns that are there: ${names.join(", ")}${more}.`;
  const summary = `${alias} cannot be drawn as it is: ${why}.${there}`;
  const hints = ["Reshape it with code_interpreter: build flat rows there and call render_chart(spec, data) in Python."];
  return { ok: false, toolError: createToolError({ code: "CHART_INVALID", tool: TOOL, summary, details, hints }) };
}
