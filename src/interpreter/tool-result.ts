import { lookUpError, type ToolErrorCode } from "../errors/error-table.ts";
import { createToolError, type ToolError, type ToolErrorDetail } from "../errors/tool-error.ts";
import type { EvidenceItem, EvidenceStore } from "../evidence/evidence-store.ts";
import { describeWhatSurvives, interpreterHints, omittedOutputMark, toDiagnosticNotes } from "../prompts/interpreter-tools.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { Coverage } from "../protocol/coverage-event.ts";
import type { Figure, FigureAxis, FigureSeries } from "../protocol/figure.ts";
import { createTickLabels, toPlaceText } from "../protocol/figure-text.ts";
import type { CellError, CellOutcome, CellStatus } from "../protocol/outcome.ts";
import { clipMiddle, clipText } from "../text/clip-text.ts";
import { parseExactJson } from "../text/json.ts";
import type { ToolCallResult } from "../tools/tool.ts";
import { describeFindings, findHiddenCoverage, toFindings, type Finding } from "./findings.ts";

/** What a call of `code_interpreter` or `python_code_edit` returned. `text` is JSON within a budget: it counts what it leaves out and names the alias that has all of it. */
export interface ToolResult extends ToolCallResult {
  /** How the cell ended; null if no cell was run. */
  readonly outcome: CellOutcome | null;
  /** Why the call failed; null if it succeeded. */
  readonly error: ToolError | null;
  readonly artifacts: readonly ArtifactEnvelope[];
  /** The alias of the complete result, for later cells and charts. */
  readonly resultAlias: string | null;
  /** Flaws of what the cell drew. */
  readonly findings: readonly Finding[];
  /** The call that an agent loop can force next. A successful call can need a repair too. */
  readonly repair: Repair | null;
}

export interface Repair {
  tool: "python_code_edit" | "render_chart";
  because: string;
}

export interface ToolResultParts {
  readonly tool: string;
  readonly outcome?: CellOutcome | undefined;
  /** A failure outside the cell. The error of a failed cell is derived from its outcome. */
  readonly error?: ToolError | undefined;
  readonly artifacts?: readonly ArtifactEnvelope[];
  readonly resultAlias?: string | null;
}

export interface ToolResultContext {
  /** Holds the result under its alias. */
  readonly evidence: EvidenceStore;
  /** What the cells of the turn noted about coverage, this cell included. */
  readonly coverage?: readonly Coverage[] | undefined;
  /** Whether the next cell runs in the same sandbox. Default: true. */
  readonly keepsSandbox?: boolean | undefined;
}

export function toToolResult(
  { tool, outcome, error, artifacts = [], resultAlias = null }: ToolResultParts,
  { evidence, coverage = [], keepsSandbox = true }: ToolResultContext,
): ToolResult {
  const failure = error ?? (outcome === undefined ? null : toCellError(outcome, tool));
  const aliases = resultAlias === null ? [] : [resultAlias];
  const findings = outcome?.status === "ok" ? findFlaws(outcome, coverage) : [];
  const result = {
    status: outcome === undefined ? ("refused" as const) : failure === null ? ("ok" as const) : ("error" as const),
    outcome: outcome ?? null,
    error: failure,
    artifacts,
    resultAlias,
    aliases,
    cutAliases: aliases.filter((alias) => !isShownInFull(evidence.get(alias)!)),
    findings,
    repair: outcome === undefined ? null : toRepair(outcome, findings),
  };
  return { ...result, text: toModelText(result, evidence, keepsSandbox) };
}

type FailedStatus = Exclude<CellStatus, "ok">;

const codes: Readonly<Record<FailedStatus, ToolErrorCode>> = {
  python_error: "PYTHON_ERROR",
  timeout: "PYTHON_TIMEOUT",
  out_of_memory: "PYTHON_OUT_OF_MEMORY",
  output_limit: "PYTHON_OUTPUT_LIMIT",
  crashed: "PYTHON_CRASHED",
  contract_violation: "CONTRACT_VIOLATION",
  sandbox_lost: "SANDBOX_LOST",
};

/** Turns a failed cell into the error that a model reads; returns null if the cell succeeded. */
export function toCellError({ status, error }: CellOutcome, tool: string): ToolError | null {
  if (status === "ok") return null;
  return createToolError({
    code: codes[status],
    tool,
    summary: summarize(status, error),
    details: error === undefined ? [] : [toDetail(error)],
    hints: error?.type === "ArtifactRefused" ? [interpreterHints.rejectedArtifact, interpreterHints.edit] : hintsFor(codes[status]),
  });
}

/** Returns "Type: message" without repeating the type. */
function describeCellError({ type, message }: CellError): string {
  if (message.startsWith(`${type}: `)) return message;
  return message === "" ? type : `${type}: ${message}`;
}

function hintsFor(code: ToolErrorCode): string[] {
  const { hint, retryable } = lookUpError(code);
  return [...(hint === undefined ? [] : [hint]), ...(retryable ? [] : [interpreterHints.edit])];
}

function summarize(status: FailedStatus, error: CellError | undefined): string {
  if (error === undefined) return `The cell ended as ${status}.`;
  const line = toPosition(error.line);
  const where = line === undefined ? "" : ` (line ${line})`;
  return status === "python_error" || status === "contract_violation" ? `${describeCellError(error)}${where}` : error.message || error.type;
}

function toDetail(error: CellError): ToolErrorDetail {
  const { line, column, traceback, limit } = error;
  const measured = limit === undefined ? "" : ` [${limit.name}: ${limit.seen} seen, ${limit.allowed} allowed]`;
  return {
    path: "code",
    issue: `${describeCellError(error)}${measured}`,
    received_type: "string",
    line: toPosition(line),
    column: toPosition(column),
    traceback,
  };
}

/** Returns undefined for anything that is not a position: the number comes from the sandbox. */
function toPosition(position: number | undefined): number | undefined {
  return position !== undefined && Number.isSafeInteger(position) && position >= 0 ? position : undefined;
}

function findFlaws({ diagnostics, artifacts }: CellOutcome, coverage: readonly Coverage[]): Finding[] {
  return [...toFindings(diagnostics, "figure"), ...findHiddenCoverage(artifacts, coverage)];
}

const MAX_REASON_CHARACTERS = 500;

/** Returns why the code should be edited before the turn goes on, or null if an edit is not needed or would not help. */
export function toRepair(outcome: CellOutcome, found?: readonly Finding[]): Repair | null {
  const { status, error } = outcome;
  if (status === "sandbox_lost") return null; // not the code's fault
  if (status === "ok") {
    const findings = found ?? findFlaws(outcome, []);
    return findings.length === 0 ? null : { tool: "python_code_edit", because: describeFindings(findings) };
  }
  const because = error === undefined ? `The cell ended as ${status}.` : clipText(describeCellError(error), MAX_REASON_CHARACTERS);
  return { tool: "python_code_edit", because };
}

const budget = { resultBytes: 4096, stdoutCharacters: 4096, stderrCharacters: 1024, artifactBytes: 8192 } as const;

function toModelText(result: Omit<ToolResult, "text">, evidence: EvidenceStore, keepsSandbox: boolean): string {
  const { outcome, error, repair } = result;
  const document: Record<string, unknown> = { status: outcome?.status ?? "refused" };
  if (error !== null) document["error"] = error;
  if (repair !== null) document["repair"] = repair;
  if (outcome !== null) {
    if (result.resultAlias !== null) Object.assign(document, toResultFields(result.resultAlias, evidence));
    if (outcome.stdout !== "") document["stdout"] = clipOutput(outcome.stdout, budget.stdoutCharacters, "stdout");
    if (outcome.stderr !== "") document["stderr"] = clipOutput(outcome.stderr, budget.stderrCharacters, "stderr");
    if (result.artifacts.length > 0) document["artifacts"] = summarizeArtifacts(result.artifacts);
    const notes = toDiagnosticNotes(outcome.diagnostics);
    if (notes.length > 0) document["notes"] = notes;
    document["survives"] = describeWhatSurvives(outcome.status, keepsSandbox);
  }
  return JSON.stringify(document);
}

/** The result itself if it is small, otherwise a preview. */
function toResultFields(alias: string, evidence: EvidenceStore): Record<string, unknown> {
  const item = evidence.get(alias)!;
  if (isShownInFull(item)) return { resultAlias: alias, result: parseExactJson(new TextDecoder().decode(item.read())) };
  return { resultAlias: alias, resultPreview: parseExactJson(evidence.preview(alias, { maxBytes: budget.resultBytes }).json) };
}

function isShownInFull({ bytes }: EvidenceItem): boolean {
  return bytes <= budget.resultBytes / 2;
}

function clipOutput(text: string, limit: number, stream: "stdout" | "stderr"): string {
  return clipMiddle(text, limit, (missing) => omittedOutputMark(stream, missing));
}

/** How much of each figure and chart is summarized. */
interface SummaryLimits {
  readonly axes: number;
  readonly series: number;
  /** Of each title, label and name. */
  readonly characters: number;
}

/** From detailed to terse; the first level that fits the budget is used. */
const summaryLevels: readonly SummaryLimits[] = [
  { axes: 6, series: 12, characters: 200 },
  { axes: 4, series: 4, characters: 80 },
  { axes: 1, series: 1, characters: 40 },
  { axes: 0, series: 0, characters: 40 },
];

function summarizeArtifacts(artifacts: readonly ArtifactEnvelope[]): unknown {
  const levels = summaryLevels.map((limits) => () => artifacts.map((artifact) => summarizeArtifact(artifact, limits)));
  const fits = (summaries: unknown): boolean => Buffer.byteLength(JSON.stringify(summaries)) <= budget.artifactBytes;
  return levels.find((summarize) => fits(summarize()))?.() ?? levels.at(-1)!();
}

function summarizeArtifact(artifact: ArtifactEnvelope, limits: SummaryLimits): unknown {
  const { kind, url, contentHash, title } = artifact;
  const clip = (text: string): string => clipText(text, limits.characters);
  const shared = { kind, url, contentHash, ...(title === undefined ? {} : { title: clip(title) }) };
  if (artifact.kind === "chart") {
    const { type, series } = artifact.spec;
    const more = series.length - limits.series;
    const keys = series.slice(0, limits.series).map(({ key }) => clip(key));
    return { ...shared, type, rows: artifact.data.length, series: keys, ...(more > 0 ? { moreSeries: more } : {}) };
  }
  return {
    ...shared,
    alt: clip(artifact.alt),
    width: artifact.width,
    height: artifact.height,
    ...(artifact.figure ? { figure: summarizeFigure(artifact.figure, limits) } : {}),
  };
}

/** Summarizes the data behind a picture: what was drawn, how many points, from where to where. Counts what is left out. */
function summarizeFigure({ title: figureTitle, axes }: Figure, limits: SummaryLimits): unknown[] {
  const more = axes.length - limits.axes;
  const clip = (text: string): string => clipText(text, limits.characters);
  const shown = axes.slice(0, limits.axes).map(({ title, x, y, series, unread }) => ({
    ...(title ? { title: clip(title) } : {}),
    ...summarizeAxis("x", x, clip),
    ...summarizeAxis("y", y, clip),
    series: series.slice(0, limits.series).map((one) => summarizeSeries(one, { x, y }, clip)),
    ...(series.length > limits.series ? { moreSeries: series.length - limits.series } : {}),
    ...(unread.length > 0 ? { unread: unread.reduce((sum, { count = 1 }) => sum + count, 0) } : {}),
  }));
  return [...(figureTitle ? [{ figureTitle: clip(figureTitle) }] : []), ...shown, ...(more > 0 ? [{ moreAxes: more }] : [])];
}

function summarizeAxis(name: "x" | "y", { scale, label }: FigureAxis, clip: (text: string) => string): Record<string, string> {
  return { ...(label ? { [name]: clip(label) } : {}), ...(scale === "linear" ? {} : { [`${name}Scale`]: scale }) };
}

function summarizeSeries(series: FigureSeries, axes: { x: FigureAxis; y: FigureAxis }, clip: (text: string) => string): unknown {
  const { type, label, orientation } = series;
  // Bars that lie have their places on y and their amounts on x.
  const [along, across] = type === "barh" || orientation === "horizontal" ? (["y", "x"] as const) : (["x", "y"] as const);
  const amounts = series[across];
  const numbers = amounts.map(Number).filter((number, at) => Number.isFinite(number) && isNumber(amounts[at]));
  // Not Math.min(...numbers): a figure can have more points than a call can have arguments.
  const min = numbers.reduce((a, b) => Math.min(a, b), Infinity);
  const max = numbers.reduce((a, b) => Math.max(a, b), -Infinity);
  const gaps = amounts.filter((value) => value === null).length;
  const places = listPlaces(series, along, axes[along]).map((place) => (typeof place === "string" ? clip(place) : place));
  const toAmount = (value = Number.NaN): unknown => toPlaceText(axes[across], { value });
  return {
    type,
    ...(label ? { label: clip(label) } : {}),
    points: amounts.length,
    ...(gaps > 0 ? { gaps } : {}),
    ...(places.length > 0 ? { from: places[0], to: places.at(-1) } : {}),
    ...(numbers.length > 0 ? { min: toAmount(min), max: toAmount(max), last: toAmount(numbers.at(-1)) } : {}),
  };
}

/** The first and the last place of a series, as a reader expects them. */
function listPlaces(series: FigureSeries, along: "x" | "y", axis: FigureAxis): unknown[] {
  const labelAt = createTickLabels(axis);
  const known = series[along].flatMap((value, at) => (value === null || Array.isArray(value) ? [] : [{ value, at }]));
  return [known[0], known.at(-1)].flatMap((one) => {
    if (one === undefined) return [];
    const nanoseconds = series[`${along}Nanoseconds`]?.[one.at];
    const place = { value: one.value, category: series[`${along}Categories`]?.[one.at], nanoseconds };
    const name = series.type === "pie" ? series.labels?.[one.at] : axis.scale === "category" ? labelAt(place) : null;
    return [name ?? toPlaceText(axis, place)];
  });
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" || typeof value === "string";
}
