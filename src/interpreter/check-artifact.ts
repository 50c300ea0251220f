import { createHash } from "node:crypto";
import type { ImageChecker } from "../artifacts/create-image-checker.ts";
import { artifactTextLimits, saysSomething } from "../protocol/artifact.ts";
import { chartRowsSchema, chartSpecSchema } from "../protocol/chart-spec.ts";
import { checkChart as findChartFaults } from "../protocol/check-chart.ts";
import { figureSchema } from "../protocol/figure.ts";
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
  return kind === "chart" ? checkChartBody(emitted) : await checkImageBody(emitted);
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
  const figure = body.length > pngBytes ? figureSchema.safeParse(parseJson(body.subarray(pngBytes))) : null;
  if (figure !== null && !figure.success) return refuse("the data behind an image is not as it must be");
  const { width, height } = found;
  const details = { ...(frame.title ? { title: frame.title } : {}), ...(figure === null ? {} : { figure: figure.data }) };
  return { ok: true, artifact: { kind: "image", alt: frame.alt, width, height, contentHash: sha256(png), bytes: png, ...details } };
}

function checkChartBody({ frame, body, limits }: Emitted): CheckedArtifact {
  if (body.length > limits.artifactBytes) return refuse(`a chart has ${body.length} bytes, ${limits.artifactBytes} are allowed`);
  const chart = parseJson(body) as { spec?: unknown; data?: unknown } | undefined;
  const spec = chartSpecSchema.safeParse(chart?.spec);
  const data = chartRowsSchema.safeParse(chart?.data);
  if (!spec.success || !data.success) return refuse("a chart has no spec and rows as the schema has them");
  const [fault] = findChartFaults(spec.data, data.data);
  if (fault !== undefined) return refuse(`a chart is wrong at ${fault.path}: ${fault.message}`);
  const title = frame.title ? { title: frame.title } : {};
  return {
    ok: true,
    artifact: { kind: "chart", spec: spec.data, data: data.data, contentHash: sha256(body), bytes: Buffer.from(body), ...title },
  };
}

function refuse(why: string): CheckedArtifact {
  return { ok: false, why };
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  } catch {
    return undefined;
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
