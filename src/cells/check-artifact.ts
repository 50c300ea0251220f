import { createHash } from "node:crypto";
import type { ImageChecker } from "../artifacts/create-image-checker.ts";
import { artifactTextLimits, saysSomething } from "../protocol/artifact.ts";
import type { ChartRow, ChartSpec } from "../protocol/chart-spec.ts";
import type { Figure } from "../protocol/figure.ts";
import type { CellArtifact } from "../protocol/outcome.ts";
import type { ArtifactFrame } from "../protocol/worker-frames.ts";
import type { SandboxLimits } from "../sandbox/contract.ts";

export type CheckedArtifact = { ok: true; artifact: CellArtifact } | { ok: false; why: string };

interface Emitted {
  readonly frame: ArtifactFrame;
  readonly body: Uint8Array;
  readonly limits: SandboxLimits;
  readonly images: ImageChecker;
}

/** What a sandbox calls an artifact, held against what one is. Nothing the sandbox says of it is believed: size, content and hash are read from the bytes. */
export async function checkArtifact(emitted: Emitted): Promise<CheckedArtifact> {
  const { kind, alt = "", title } = emitted.frame;
  const tooLong = whyTooLong(kind, "title", title ?? "") ?? whyTooLong(kind, "alt", alt);
  if (tooLong !== null) return refuse(tooLong);
  return await (kind === "chart" ? checkChartBody(emitted) : checkImageBody(emitted));
}

function whyTooLong(kind: string, name: keyof typeof artifactTextLimits, text: string): string | null {
  const allowed = artifactTextLimits[name];
  return text.length <= allowed ? null : `the ${name} of the ${kind} has ${text.length} characters, ${allowed} are allowed`;
}

async function checkImageBody({ frame, body, limits, images }: Emitted): Promise<CheckedArtifact> {
  const pngBytes = frame.pngBytes ?? body.length;
  if (pngBytes > body.length) return refuse("an image is shorter than it says");
  if (pngBytes > limits.artifactBytes) return refuse(`an image has ${pngBytes} bytes, ${limits.artifactBytes} are allowed`);
  if (frame.alt === undefined || !saysSomething(frame.alt)) return refuse("an image has no alt text that says what it shows");
  const png = Buffer.from(body.subarray(0, pngBytes));
  const found = await images.check(png);
  if (!found.ok) return refuse(`an image ${found.why}`);
  const data = body.subarray(pngBytes);
  const why = data.length === 0 ? null : await images.judgeJson("figure", data);
  if (why !== null) return refuse(why);
  const { width, height } = found;
  const figure = data.length === 0 ? {} : { figure: parseJudged(data) as Figure };
  const details = { ...(frame.title ? { title: frame.title } : {}), ...figure };
  return { ok: true, artifact: { kind: "image", alt: frame.alt, width, height, contentHash: sha256(png), bytes: png, ...details } };
}

async function checkChartBody({ frame, body, limits, images }: Emitted): Promise<CheckedArtifact> {
  if (body.length > limits.artifactBytes) return refuse(`a chart has ${body.length} bytes, ${limits.artifactBytes} are allowed`);
  const why = await images.judgeJson("chart", body);
  if (why !== null) return refuse(why);
  const { spec, data } = parseJudged(body) as { spec: ChartSpec; data: ChartRow[] };
  const title = frame.title ? { title: frame.title } : {};
  return { ok: true, artifact: { kind: "chart", spec, data, contentHash: sha256(body), bytes: Buffer.from(body), ...title } };
}

function refuse(why: string): CheckedArtifact {
  return { ok: false, why };
}

/** JSON that was found to be what it is said to be. */
function parseJudged(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
