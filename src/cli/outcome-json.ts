import type { CellOutcome } from "../protocol/outcome.ts";
import type { WrittenArtifact } from "./write-artifacts.ts";

/** The outcome as CONTRACTS has it, one document. The result is spliced in as the sandbox wrote it, so that no number loses a digit. */
export function toOutcomeJson(outcome: CellOutcome, artifacts: readonly WrittenArtifact[]): string {
  const { resultJson, exitCode: _, ...rest } = outcome;
  const document = { ...rest, result: rawJson(resultJson ?? "null"), artifacts: artifacts.map(toArtifactJson) };
  return JSON.stringify(document, null, 2);
}

function toArtifactJson({ artifact, url }: WrittenArtifact): unknown {
  const shared = {
    schemaVersion: 1,
    kind: artifact.kind,
    url,
    ...(artifact.title ? { title: artifact.title } : {}),
    contentHash: artifact.contentHash,
  };
  if (artifact.kind === "chart") return { ...shared, spec: artifact.spec, data: artifact.data };
  const { alt, width, height, figure } = artifact;
  return { ...shared, alt, bytes: artifact.bytes.length, width, height, ...(figure === undefined ? {} : { figure }) };
}

/** Keeps the text of numbers that a JavaScript number cannot hold. */
export function rawJson(text: string): unknown {
  return parseExact(text, (source) => rawJsonOf(source));
}

/** Parses JSON; integers past 2^53 are given to `keep` as they were written. */
export function parseExact(text: string, keep: (source: string) => unknown): unknown {
  return JSON.parse(text, ((_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && context?.source !== undefined && !isExact(value, context.source)
      ? keep(context.source)
      : value) as Parameters<typeof JSON.parse>[1]);
}

function isExact(value: number, source: string): boolean {
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(source);
}

function rawJsonOf(source: string): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(source);
}
