import { createHash } from "node:crypto";
import type { SandboxLimits } from "../sandbox/contract.ts";
import type { CellArtifact } from "../protocol/outcome.ts";
import type { ArtifactFrame } from "../protocol/worker-frames.ts";

const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const MAX_PIXELS = 50_000_000;

export type CheckedArtifact = { ok: true; artifact: CellArtifact } | { ok: false; why: string };

/** What a sandbox calls an artifact, held against what one is. Nothing the sandbox says of it is believed: size and hash are read from the bytes. */
export function checkArtifact({
  frame,
  body,
  limits,
}: {
  frame: ArtifactFrame;
  body: Uint8Array;
  limits: SandboxLimits;
}): CheckedArtifact {
  return frame.kind === "image" ? checkImage(frame, body, limits) : checkChart(frame, body);
}

function checkImage(frame: ArtifactFrame, body: Uint8Array, limits: SandboxLimits): CheckedArtifact {
  const pngBytes = frame.pngBytes ?? body.length;
  const png = Buffer.from(body.subarray(0, pngBytes));
  if (pngBytes > body.length || png.length < 33 || !png.subarray(0, 8).equals(PNG_SIGNATURE) || png.toString("latin1", 12, 16) !== "IHDR") {
    return { ok: false, why: "an image is not a PNG" };
  }
  if (png.length > limits.artifactBytes) return { ok: false, why: `an image has ${png.length} bytes, ${limits.artifactBytes} are allowed` };
  const width = png.readUInt32BE(16);
  const height = png.readUInt32BE(20);
  if (width === 0 || height === 0 || width * height > MAX_PIXELS) {
    return { ok: false, why: `an image is ${width} x ${height} pixels, at most ${MAX_PIXELS} pixels are allowed` };
  }
  if (!frame.alt || !/\p{L}/u.test(frame.alt)) return { ok: false, why: "an image has no alt text" };
  const figure = body.length > pngBytes ? parseJson(body.subarray(pngBytes)) : undefined;
  return {
    ok: true,
    artifact: {
      kind: "image",
      alt: frame.alt,
      ...(frame.title ? { title: frame.title } : {}),
      width,
      height,
      contentHash: sha256(png),
      bytes: png,
      ...(figure === undefined ? {} : { figure }),
    },
  };
}

function checkChart(frame: ArtifactFrame, body: Uint8Array): CheckedArtifact {
  const chart = parseJson(body);
  if (typeof chart !== "object" || chart === null || !("spec" in chart) || !("data" in chart)) {
    return { ok: false, why: "a chart is not JSON with spec and data" };
  }
  return {
    ok: true,
    artifact: {
      kind: "chart",
      ...(frame.title ? { title: frame.title } : {}),
      spec: chart.spec,
      data: chart.data,
      contentHash: sha256(body),
      bytes: Buffer.from(body),
    },
  };
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
