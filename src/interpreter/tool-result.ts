import type { ToolError } from "../errors/tool-error.ts";
import type { EvidenceStore } from "../evidence/evidence-store.ts";
import { clipMiddle, clipText } from "../text/clip-text.ts";
import { parseExactJson } from "../text/json.ts";
import type { Figure, FigureSeries } from "../protocol/figure.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { CellOutcome, CellStatus } from "../protocol/outcome.ts";
import { toCellError } from "./to-cell-error.ts";

/** What one call of a tool gave: the outcome of its cell, the error that the model reads, what was published, and the text for the model. */
export interface ToolResult {
  /** How the cell ended; null when nothing was run. */
  readonly outcome: CellOutcome | null;
  /** Why the call failed; null when it succeeded. */
  readonly error: ToolError | null;
  readonly artifacts: readonly ArtifactEnvelope[];
  /** The alias under which the whole result is kept, for a later cell or chart. */
  readonly resultAlias: string | null;
  /** The call that a loop can force next. A call that succeeded can need one too. */
  readonly repair: Repair | null;
  /** What the model reads: JSON within its budget. What is left out is counted, with the alias that has all of it. */
  readonly text: string;
}

export interface Repair {
  tool: "python_code_edit";
  because: string;
}

export interface CallFacts {
  readonly tool: string;
  readonly outcome?: CellOutcome | undefined;
  /** What failed outside of the cell; the error of a cell that failed is its outcome's. */
  readonly error?: ToolError | undefined;
  readonly artifacts?: readonly ArtifactEnvelope[];
  readonly resultAlias?: string | null;
}

export interface ToolResultPlace {
  /** Where the result is kept. */
  readonly evidence: EvidenceStore;
  /** Whether a next cell finds the same sandbox. */
  readonly keepsSandbox?: boolean | undefined;
}

export function toToolResult(
  { tool, outcome, error, artifacts = [], resultAlias = null }: CallFacts,
  { evidence, keepsSandbox = true }: ToolResultPlace,
): ToolResult {
  const result = {
    outcome: outcome ?? null,
    error: error ?? (outcome === undefined ? null : toCellError(outcome, { tool })),
    artifacts,
    resultAlias,
    repair: outcome === undefined ? null : toRepair(outcome),
  };
  return { ...result, text: toText(result, evidence, keepsSandbox) };
}

const REASON_CHARACTERS = 500;

/** Why the code should be edited before the turn goes on; null when there is nothing to repair, or an edit would not help. */
export function toRepair({ status, diagnostics, error }: CellOutcome): Repair | null {
  if (status === "ok") return lowCoverageRepair(diagnostics["lowCoverage"]);
  if (status === "sandbox_lost") return null; // not the code's fault
  return { tool: "python_code_edit", because: error === undefined ? `The cell ended as ${status}.` : describe(error.type, error.message) };
}

function describe(type: string, message: string): string {
  const text = message === "" ? type : message.startsWith(`${type}: `) ? message : `${type}: ${message}`;
  return clipText(text, REASON_CHARACTERS);
}

function lowCoverageRepair(lowCoverage: unknown): Repair | null {
  if (!Array.isArray(lowCoverage) || lowCoverage.length === 0) return null;
  const lines = (lowCoverage as Partial<Record<string, unknown>>[]).slice(0, 3).map((line) => {
    const { label, observed, expected } = line;
    return `${JSON.stringify(typeof label === "string" ? clipText(label, 100) : label)} has ${String(observed)} of ${String(expected)} expected points`;
  });
  const more = lowCoverage.length > 3 ? `, and ${lowCoverage.length - 3} more lines` : "";
  return { tool: "python_code_edit", because: `The figure is sparse: ${lines.join("; ")}${more}.` };
}

const budget = { resultBytes: 4096, stdoutCharacters: 4096, stderrCharacters: 1024, artifactBytes: 8192 } as const;

/** From full to terse: the first that fits is taken. */
const briefLevels: readonly BriefLimits[] = [
  { axes: 6, series: 12, characters: 200 },
  { axes: 4, series: 4, characters: 80 },
  { axes: 1, series: 1, characters: 40 },
  { axes: 0, series: 0, characters: 40 },
];

function toText(result: Omit<ToolResult, "text">, evidence: EvidenceStore, keepsSandbox: boolean): string {
  const { outcome, error, repair } = result;
  const document: Record<string, unknown> = { status: outcome?.status ?? "refused" };
  if (error !== null) document["error"] = error;
  if (repair !== null) document["repair"] = repair;
  if (outcome !== null) {
    if (result.resultAlias !== null) Object.assign(document, toResult(result.resultAlias, evidence));
    if (outcome.stdout !== "") document["stdout"] = cut(outcome.stdout, budget.stdoutCharacters, "stdout");
    if (outcome.stderr !== "") document["stderr"] = cut(outcome.stderr, budget.stderrCharacters, "stderr");
    if (result.artifacts.length > 0) document["artifacts"] = toBriefs(result.artifacts);
    const notes = describeDiagnostics(outcome.diagnostics);
    if (notes.length > 0) document["notes"] = notes;
    document["survives"] = keepsSandbox ? survives(outcome.status) : "Of this cell only what it handed over: its sandbox is gone.";
  }
  return JSON.stringify(document);
}

function toResult(alias: string, evidence: EvidenceStore): Record<string, unknown> {
  const whole = evidence.get(alias)!;
  if (whole.bytes <= budget.resultBytes / 2) return { resultAlias: alias, result: parseExactJson(new TextDecoder().decode(whole.read())) };
  return { resultAlias: alias, resultPreview: parseExactJson(evidence.preview(alias, { maxBytes: budget.resultBytes }).json) };
}

function toBriefs(artifacts: readonly ArtifactEnvelope[]): unknown {
  const levels = briefLevels.map((limits) => () => artifacts.map((artifact) => toBrief(artifact, limits)));
  const fits = (briefs: unknown): boolean => Buffer.byteLength(JSON.stringify(briefs)) <= budget.artifactBytes;
  return levels.find((brief) => fits(brief()))?.() ?? levels.at(-1)!();
}

function toBrief(artifact: ArtifactEnvelope, limits: BriefLimits): unknown {
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
    ...(artifact.figure ? { figure: describeFigure(artifact.figure, limits) } : {}),
  };
}

function cut(text: string, limit: number, what: string): string {
  return clipMiddle(text, limit, (missing) => `\n… [${missing} characters of ${what} are not shown here] …\n`);
}

function survives(status: CellStatus): string {
  if (status === "ok") return "Variables and files of this cell are there in the next one of this turn.";
  if (status === "sandbox_lost") return "The sandbox is gone. The next call says whether the earlier variables could be restored.";
  return "Nothing of this cell: variables are as they were before it. Files it changed may remain.";
}

type Found = Readonly<Record<string, unknown>>;

/** What was noticed about a cell, in sentences a model can act on. Unknown keys are shown as they are: nothing is dropped in silence. */
function describeDiagnostics(diagnostics: Found): string[] {
  const notes = Object.entries(diagnostics).flatMap(([name, value]) => {
    const words = Object.hasOwn(sentences, name) ? sentences[name]!(value) : `${name}: ${brief(value)}`;
    return words === "" ? [] : [clipText(words, NOTE_CHARACTERS)];
  });
  const rest = notes.length - MOST_NOTES;
  return rest > 0 ? [...notes.slice(0, MOST_NOTES), `… ${rest} more notes`] : notes;
}

/** What is in them comes out of a sandbox, and may be of any size. */
const NOTE_CHARACTERS = 1000;
const MOST_NOTES = 20;

const count = (value: unknown): number => (Array.isArray(value) ? value.length : Number(value));
const list = (value: unknown): Found[] => (Array.isArray(value) ? (value as Found[]) : []);
const brief = (value: unknown): string => clipText(JSON.stringify(value) ?? "", 600);

const sentences: Readonly<Record<string, (value: unknown) => string>> = {
  implicitResult: () => "The value of the last expression was taken as the result; call set_result(value) to say it.",
  implicitResultError: (value) => `The last expression is no result: ${String(value)}. Call set_result(value) with what has a JSON form.`,
  frames: () => "",
  nonFinite: (value) => {
    const places = list(value)
      .slice(0, 5)
      .map(({ path, count: times }) => `${String(path)} (${String(times)})`);
    return `NaN or infinite values became null in the result: ${places.join(", ")}${count(value) > 5 ? ` and ${count(value) - 5} more places` : ""}.`;
  },
  unsavedFigures: (value) => (count(value) > 0 ? `${count(value)} figure(s) were drawn and not handed over: call save_figure(alt).` : ""),
  showCalls: (value) => (count(value) > 0 ? "plt.show() shows nothing here: call save_figure(alt)." : ""),
  savefigCalls: (value) => (count(value) > 0 ? "plt.savefig() writes a file that nobody gets: call save_figure(alt)." : ""),
  missingGlyphs: (value) => `No font has some characters, they are drawn as boxes: ${brief(value)}.`,
  overlappingLabels: (value) => (value ? `Tick labels overlap (${brief(value)}): rotate them, use fewer, or a date locator.` : ""),
  largeLegend: (value) => (value ? `The legend has many entries (${brief(value)}): draw fewer lines or label them directly.` : ""),
  lowCoverage: (value) => {
    const lines = list(value).map(
      ({ label, observed, expected, largestGap }) =>
        `${String(label)} has ${String(observed)} of ${String(expected)} points, largest hole ${brief(largestGap)}`,
    );
    return `Plotted lines are sparse: ${lines.slice(0, 5).join("; ")}. Repair with python_code_edit (align first, fill from the source), or name the cadence in save_figure.`;
  },
  dataQuality: (value) => (count(value) > 0 ? `Data quality: ${brief(value)}` : ""),
  inputsChanged: (value) => {
    const files = list(value).map(({ alias, bytes }) => `${String(alias)} (now ${String(bytes)} bytes)`);
    return `Changed on disk since an earlier cell used them: ${files.join(", ")}. This cell had the new content; variables that earlier cells made of the old one are as they were.`;
  },
  scratchChanged: (value) => (count(value) > 0 ? `Files that the failed cell changed: ${brief(value)}.` : ""),
  leftBehind: (value) => {
    const { threads, processes } = (value ?? {}) as Found;
    return `The cell left ${String(threads)} thread(s) and ${String(processes)} process(es) running: join and wait for them in the cell.`;
  },
  cellUndone: () =>
    "The cell before this one was undone for an edit that was aborted: variables that it had made or changed are as they were before it.",
  sandboxReplaced: (value) => {
    const { variables, cells, because } = (value ?? {}) as Found;
    return variables === "replayed"
      ? `The sandbox was replaced; the ${String(cells)} earlier cell(s) were run again, so their variables and files are there. Files that failed cells had left are not.`
      : `The sandbox was replaced and the variables and files of ${String(cells)} earlier cell(s) are gone (${String(because)}): derive them again. Inputs are still bound.`;
  },
};

/** How much of each picture and chart is told. */
interface BriefLimits {
  readonly axes: number;
  readonly series: number;
  /** Of each title, label and name. */
  readonly characters: number;
}

/** The numbers behind a picture in brief: what was drawn, how many points, from where to where. What is left out is counted. */
function describeFigure(figure: Figure, limits: BriefLimits): unknown[] {
  const more = figure.axes.length - limits.axes;
  const clip = (text: string): string => clipText(text, limits.characters);
  const shown = figure.axes.slice(0, limits.axes).map(({ title, xLabel, yLabel, series, unread }) => ({
    ...(title ? { title: clip(title) } : {}),
    ...(xLabel ? { x: clip(xLabel) } : {}),
    ...(yLabel ? { y: clip(yLabel) } : {}),
    series: series.slice(0, limits.series).map((one) => describeSeries(one, clip)),
    ...(series.length > limits.series ? { moreSeries: series.length - limits.series } : {}),
    ...(unread.length > 0 ? { unread: unread.length } : {}),
  }));
  return more > 0 ? [...shown, { moreAxes: more }] : shown;
}

function describeSeries({ type, label, x, y }: FigureSeries, clip: (text: string) => string): unknown {
  const place = (value: unknown): unknown => (typeof value === "string" ? clip(value) : value);
  const numbers = y.filter((value): value is number => typeof value === "number");
  const gaps = y.filter((value) => value === null).length;
  const places = x.filter((value) => value !== null && !Array.isArray(value));
  return {
    type,
    ...(label ? { label: clip(label) } : {}),
    points: y.length,
    ...(gaps > 0 ? { gaps } : {}),
    ...(places.length > 0 ? { from: place(places[0]), to: place(places.at(-1)) } : {}),
    ...(numbers.length > 0 ? { min: minOf(numbers), max: maxOf(numbers), last: numbers.at(-1) } : {}),
  };
}

function minOf(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => Math.min(a, b));
}

function maxOf(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => Math.max(a, b));
}
