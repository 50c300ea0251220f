import { createHash } from "node:crypto";
import type { ArtifactChecker } from "../artifacts/create-artifact-checker.ts";
import { artifactTextLimits, saysSomething } from "../protocol/artifact.ts";
import type { ChartRow, ChartSpec } from "../protocol/chart-spec.ts";
import type { Figure } from "../protocol/figure.ts";
import type { CellArtifact } from "../protocol/outcome.ts";
import type { ArtifactFrame } from "../protocol/worker-frames.ts";

export type CheckedArtifact = { ok: true; artifact: CellArtifact } | { ok: false; why: string };

interface EmittedArtifact {
  readonly frame: ArtifactFrame;
  /** The PNG; empty for a chart. */
  readonly image: Uint8Array;
  /** The data behind the image as JSON, or empty; for a chart, its spec and rows. */
  readonly data: Uint8Array;
  readonly artifactChecker: ArtifactChecker;
  /** An abort gives up the artifact's turn in the checker. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Validates an artifact that a sandbox emitted. Its size was limited on arrival. Dimensions and hash are computed from the bytes; the sandbox's own claims
 * are not trusted.
 */
export async function checkArtifact(emitted: EmittedArtifact): Promise<CheckedArtifact> {
  const { kind, alt = "", title } = emitted.frame;
  const tooLong = whyTooLong(kind, "title", title ?? "") ?? whyTooLong(kind, "alt", alt);
  if (tooLong !== null) return reject(tooLong);
  return await (kind === "chart" ? checkChart(emitted) : checkImage(emitted));
}

function whyTooLong(kind: string, name: keyof typeof artifactTextLimits, text: string): string | null {
  const allowed = artifactTextLimits[name];
  return text.length <= allowed ? null : `the ${name} of the ${kind} has ${text.length} characters, ${allowed} are allowed`;
}

async function checkImage({ frame, image, data, artifactChecker, signal }: EmittedArtifact): Promise<CheckedArtifact> {
  if (frame.alt === undefined || !saysSomething(frame.alt)) return reject("an image has no alt text that says what it shows");
  const png = Buffer.from(image.buffer, image.byteOffset, image.byteLength);
  const checked = await artifactChecker.checkPng(png, signal);
  if (!checked.ok) return reject(`an image ${checked.why}`);
  const why = data.length === 0 ? null : await artifactChecker.checkJson("figure", data, signal);
  if (why !== null) return reject(why);
  const { width, height } = checked;
  const figure = data.length === 0 ? {} : { figure: parseCheckedJson(data) as Figure };
  const details = { ...(frame.title ? { title: frame.title } : {}), ...figure };
  return { ok: true, artifact: { kind: "image", alt: frame.alt, width, height, contentHash: sha256(png), bytes: png, ...details } };
}

async function checkChart({ frame, data: json, artifactChecker, signal }: EmittedArtifact): Promise<CheckedArtifact> {
  const why = await artifactChecker.checkJson("chart", json, signal);
  if (why !== null) return reject(why);
  const { spec, data } = parseCheckedJson(json) as { spec: ChartSpec; data: ChartRow[] };
  const title = frame.title ? { title: frame.title } : {};
  return { ok: true, artifact: { kind: "chart", spec, data, contentHash: sha256(json), bytes: json, ...title } };
}

function reject(why: string): CheckedArtifact {
  return { ok: false, why };
}

/**
 * Parses JSON that was checked in the process for it, once more on this thread: what the model reads about an artifact, and the check of the numbers in an
 * answer, need its values. `artifactDataBytes` bounds the block: 2 MB of numbers take 5 to 10 ms, sending the values from the process would take longer.
 */
function parseCheckedJson(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
