import type { EvidenceStore } from "../evidence/contract.ts";
import { clipText } from "../evidence/preview/clip-text.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { CodeInterpreterAnswer } from "./code-interpreter.ts";
import { describeDiagnostics } from "./describe-diagnostics.ts";
import { describeFigure, type BriefLimits } from "./describe-figure.ts";

const budget = { resultBytes: 4096, stdoutCharacters: 4096, stderrCharacters: 1024, artifactBytes: 8192 } as const;

/** From full to terse: the first that fits is taken. */
const briefLevels: readonly BriefLimits[] = [
  { axes: 6, series: 12, characters: 200 },
  { axes: 4, series: 4, characters: 80 },
  { axes: 1, series: 1, characters: 40 },
  { axes: 0, series: 0, characters: 40 },
];

export interface AnswerPlace {
  /** Whether a next cell finds the same sandbox. */
  readonly keepsSandbox?: boolean;
}

/** What a model reads of a call: valid JSON text within its budget. What is cut is said, and where the whole of it is. */
export function toModelAnswer(answer: CodeInterpreterAnswer, evidence: EvidenceStore, { keepsSandbox = true }: AnswerPlace = {}): string {
  const { outcome, envelope, repair } = answer;
  const document: Record<string, unknown> = { status: outcome?.status ?? "refused" };
  if (envelope !== null) document["error"] = envelope;
  if (repair !== null) document["repair"] = repair;
  if (outcome !== null) {
    if (answer.resultAlias !== null) Object.assign(document, toResult(answer.resultAlias, evidence));
    if (outcome.stdout !== "") document["stdout"] = cut(outcome.stdout, budget.stdoutCharacters, "stdout");
    if (outcome.stderr !== "") document["stderr"] = cut(outcome.stderr, budget.stderrCharacters, "stderr");
    if (answer.artifacts.length > 0) document["artifacts"] = toBriefs(answer.artifacts);
    const notes = describeDiagnostics(outcome.diagnostics);
    if (notes.length > 0) document["notes"] = notes;
    document["survives"] = keepsSandbox ? survives(answer) : "Of this cell only what it handed over: its sandbox is gone.";
  }
  return JSON.stringify(document);
}

function toResult(alias: string, evidence: EvidenceStore): Record<string, unknown> {
  const whole = evidence.get(alias)!;
  if (whole.bytes <= budget.resultBytes / 2) return { resultAlias: alias, result: raw(new TextDecoder().decode(whole.read())) };
  return { resultAlias: alias, resultPreview: raw(evidence.preview(alias, { maxBytes: budget.resultBytes }).json) };
}

/** Numbers stay as they are written, also those that JavaScript cannot hold. */
function raw(json: string): unknown {
  return JSON.parse(json, ((_key: string, value: unknown, { source }: { source?: string }) =>
    typeof value === "number" && source !== undefined
      ? (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(source)
      : value) as Parameters<typeof JSON.parse>[1]);
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
  if (text.length <= limit) return text;
  const half = Math.floor(limit / 2);
  const start = text.slice(0, half).replace(/[\uD800-\uDBFF]$/, ""); // a character is shown whole or not at all
  const end = text.slice(-half).replace(/^[\uDC00-\uDFFF]/, "");
  return `${start}\n… [${text.length - start.length - end.length} characters of ${what} are not shown here] …\n${end}`;
}

function survives({ outcome }: CodeInterpreterAnswer): string {
  if (outcome?.status === "ok") return "Variables and files of this cell are there in the next one of this turn.";
  if (outcome?.status === "sandbox_lost") return "The sandbox is gone. The next call says whether the earlier variables could be restored.";
  return "Nothing of this cell: variables are as they were before it. Files it changed may remain.";
}
