import type { CellOutcome } from "../protocol/outcome.ts";
import { parseExact, rawJson } from "./outcome-json.ts";
import { toTable } from "./to-table.ts";
import { jsonToTerminal, toTerminal } from "./to-terminal.ts";
import type { WrittenArtifact } from "./write-artifacts.ts";

/** What a person reads after the live output: the result, the artifacts, what was noticed, or why it failed. */
export function describeOutcome(outcome: CellOutcome, artifacts: readonly WrittenArtifact[]): string {
  const parts: string[] = [];
  if (outcome.resultJson !== null) parts.push(describeResult(outcome.resultJson));
  for (const { artifact, file } of artifacts) {
    const what =
      artifact.kind === "image"
        ? `${artifact.title ?? artifact.alt} (${artifact.width} x ${artifact.height})`
        : (artifact.title ?? "chart");
    parts.push(`${artifact.kind}: ${file}\n  ${toTerminal(what)}`);
  }
  if (outcome.status !== "ok") parts.push(describeFailure(outcome));
  const notes = describeDiagnostics(outcome.diagnostics);
  if (notes !== "") parts.push(notes);
  return parts.length === 0 ? "" : `${parts.join("\n")}\n`;
}

export function describeTiming({ timing, usage, sandbox }: CellOutcome): string {
  const ms = (value: number): string => (value >= 1000 ? `${(value / 1000).toFixed(2)} s` : `${value.toFixed(value < 10 ? 1 : 0)} ms`);
  const memory = `${Math.round(usage.peakMemoryBytes / 1024 / 1024)} MB`;
  return `ran ${ms(timing.runMs)}, start ${ms(timing.startMs)} (${sandbox.start}), cpu ${ms(usage.cpuMs)}, peak ${memory}, ${sandbox.driver} ${sandbox.id}`;
}

function describeResult(json: string): string {
  const value = parseExact(json, (source) => source);
  return isRecords(value) ? toTable(value) : jsonToTerminal(JSON.stringify(rawJson(json), null, 2));
}

function isRecords(value: unknown): value is Record<string, unknown>[] {
  return Array.isArray(value) && value.length > 0 && value.every((row) => typeof row === "object" && row !== null && !Array.isArray(row));
}

function describeFailure({ status, error }: CellOutcome): string {
  if (error === undefined) return `failed: ${status}`;
  if (error.traceback) return `failed: ${status}\n${toTerminal(error.traceback.trimEnd())}`;
  return `failed: ${status}: ${toTerminal(error.message)}`;
}

function describeDiagnostics(diagnostics: Record<string, unknown>): string {
  return Object.entries(diagnostics)
    .filter(
      ([name, value]) => name !== "implicitResult" && name !== "frames" && value !== 0 && !(Array.isArray(value) && value.length === 0),
    )
    .map(([name, value]) => `note: ${name} ${jsonToTerminal(JSON.stringify(value))}`)
    .join("\n");
}
