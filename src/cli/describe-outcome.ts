import { toDiagnosticNotes } from "../prompts/interpreter-tools.ts";
import type { CellOutcome } from "../protocol/outcome.ts";
import { escapeControls, parseExactJson, parseNumbers } from "../text/json.ts";
import { ellipsize } from "../text/clip-text.ts";
import { toTerminal } from "./terminal.ts";
import type { WrittenArtifact } from "./write-artifacts.ts";

/** Describes the outcome of a cell for a terminal: the result, the artifacts, the error and the diagnostics. */
export function describeOutcome(outcome: CellOutcome, artifacts: readonly WrittenArtifact[]): string {
  const parts: string[] = [];
  if (outcome.resultJson !== null) parts.push(describeResult(outcome.resultJson));
  for (const { artifact, file } of artifacts) {
    const caption =
      artifact.kind === "image"
        ? `${artifact.title ?? artifact.alt} (${artifact.width} x ${artifact.height})`
        : (artifact.title ?? "chart");
    parts.push(`${artifact.kind}: ${file}\n  ${toTerminal(caption)}`);
  }
  if (outcome.status !== "ok") parts.push(describeFailure(outcome));
  const { implicitResult: _, ...diagnostics } = outcome.diagnostics; // in a terminal, using the last expression is no surprise
  parts.push(...toDiagnosticNotes(diagnostics).map((note) => `note: ${toTerminal(note)}`));
  return parts.length === 0 ? "" : `${parts.join("\n")}\n`;
}

export function describeTiming({ timing, usage, sandbox }: CellOutcome): string {
  const ms = (value: number): string => (value >= 1000 ? `${(value / 1000).toFixed(2)} s` : `${value.toFixed(value < 10 ? 1 : 0)} ms`);
  const memory = `${Math.round(usage.peakMemoryBytes / 1024 / 1024)} MB`;
  return `ran ${ms(timing.runMs)}, start ${ms(timing.startMs)} (${sandbox.start}), cpu ${ms(usage.cpuMs)}, peak ${memory}, ${sandbox.driver} ${sandbox.id}`;
}

function describeResult(json: string): string {
  const value = parseNumbers(json, (number, source) => (Number.isSafeInteger(number) || !/^-?\d+$/.test(source) ? number : source));
  return isRecords(value) ? toTable(value) : escapeControls(JSON.stringify(parseExactJson(json), null, 2));
}

function isRecords(value: unknown): value is Record<string, unknown>[] {
  return Array.isArray(value) && value.length > 0 && value.every((row) => typeof row === "object" && row !== null && !Array.isArray(row));
}

function describeFailure({ status, error }: CellOutcome): string {
  if (error === undefined) return `failed: ${status}`;
  if (error.traceback) return `failed: ${status}\n${toTerminal(error.traceback.trimEnd())}`;
  return `failed: ${status}: ${toTerminal(error.message)}`;
}

/** Writes the outcome as one JSON document. The result keeps the exact digits that the sandbox wrote. */
export function toOutcomeJson(outcome: CellOutcome, artifacts: readonly WrittenArtifact[]): string {
  const { resultJson, exitCode: _, ...rest } = outcome;
  const document = { ...rest, result: parseExactJson(resultJson ?? "null"), artifacts: artifacts.map(toArtifactJson) };
  return JSON.stringify(document, null, 2);
}

function toArtifactJson({ artifact, url }: WrittenArtifact): unknown {
  const { kind, title, contentHash } = artifact;
  const shared = { schemaVersion: 1, kind, url, title: title || undefined, contentHash, bytes: artifact.bytes.length };
  if (artifact.kind === "chart") return { ...shared, spec: artifact.spec, data: artifact.data };
  const { alt, width, height, figure } = artifact;
  return { ...shared, alt, width, height, figure };
}

const MAX_ROWS = 20;
const MAX_WIDTH = 32;

/** Formats records as a table. Right-aligns numbers, shortens long cells, and counts the rows that it leaves out. */
function toTable(records: readonly Record<string, unknown>[]): string {
  const columns = [...new Set(records.flatMap((row) => Object.keys(row)))];
  const shown = records.slice(0, MAX_ROWS);
  const cells = shown.map((row) => columns.map((column) => toCell(row[column])));
  const numeric = columns.map((column) =>
    shown.every((row) => row[column] === null || row[column] === undefined || typeof row[column] === "number"),
  );
  const titles = columns.map((column) => toCell(column));
  const widths = titles.map((title, index) => Math.max(title.length, ...cells.map((row) => row[index]!.length)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, index) => (numeric[index] ? cell.padStart(widths[index]!) : cell.padEnd(widths[index]!)))
      .join("  ")
      .trimEnd();
  const rule = widths.map((width) => "─".repeat(width)).join("  ");
  const rest = records.length - shown.length;
  return [line(titles), rule, ...cells.map(line), ...(rest > 0 ? [`… and ${rest} more rows`] : [])].join("\n");
}

function toCell(value: unknown): string {
  const text = value === null || value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);
  return ellipsize(text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " "), MAX_WIDTH);
}
