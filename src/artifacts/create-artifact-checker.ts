import { join } from "node:path";
import { WorkerThread, type ThreadFailure } from "../concurrency/worker-thread.ts";
import { chartRowsSchema, chartSpecSchema } from "../protocol/chart-spec.ts";
import { checkChart } from "../protocol/check-chart.ts";
import { figureSchema } from "../protocol/figure.ts";
import { parseJson } from "../text/json.ts";
import type { PngFindings } from "./read-png.ts";

const DEADLINE_MS = 30_000;
/** Smaller JSON is checked faster on the main thread than a round trip to the worker thread takes. */
const SMALL_JSON_BYTES = 65_536;

type CheckedPng = { ok: true; width: number; height: number } | { ok: false; why: string };

/** `figure`: the data behind a picture. `chart`: a chart's spec and rows. */
export type ArtifactJsonKind = "figure" | "chart";

export interface ArtifactCheckRequest {
  readonly kind: "png" | ArtifactJsonKind;
  readonly bytes: Uint8Array;
}

/**
 * Checks off the main thread whether bytes from a sandbox are what they claim to be. Checks run one at a time; the time limit of a check starts when its
 * thread begins, so that one slow artifact does not fail the next one.
 */
export interface ArtifactChecker extends AsyncDisposable {
  checkPng(png: Uint8Array): Promise<CheckedPng>;
  /** Returns why the JSON is not a valid figure or chart, or null if it is. */
  checkJson(kind: ArtifactJsonKind, json: Uint8Array): Promise<string | null>;
  /** Starts the thread before the first artifact arrives. */
  warm(): void;
}

export function createArtifactChecker(): ArtifactChecker {
  const thread = new WorkerThread<ArtifactCheckRequest, unknown>({
    program: join(import.meta.dirname, "artifact-checker-process"),
    resourceLimits: () => ({ maxOldGenerationSizeMb: 256 }),
    timeoutMs: DEADLINE_MS,
  });

  return {
    async checkPng(png) {
      try {
        const findings = (await thread.ask({ kind: "png", bytes: png })) as PngFindings;
        if (!findings.ok) return findings;
        if (findings.blank) return { ok: false, why: "is blank: nothing visible was drawn" };
        return { ok: true, width: findings.width, height: findings.height };
      } catch (error) {
        const isTimeout = (error as ThreadFailure).reason === "timeout";
        return { ok: false, why: isTimeout ? `could not be decoded within ${DEADLINE_MS / 1000} s` : "is a PNG that cannot be decoded" };
      }
    },
    async checkJson(kind, json) {
      if (json.length < SMALL_JSON_BYTES) return checkArtifactJson(kind, json);
      try {
        return (await thread.ask({ kind, bytes: json })) as string | null;
      } catch {
        return `a ${kind} of ${json.length} bytes is too large to be checked`;
      }
    },
    warm: () => thread.warm(),
    [Symbol.asyncDispose]: () => thread.close(),
  };
}

/** Returns why JSON from a sandbox is not a valid figure or chart, or null if it is. */
export function checkArtifactJson(kind: ArtifactJsonKind, bytes: Uint8Array): string | null {
  const value = parseJson(bytes);
  if (kind === "figure") return figureSchema.safeParse(value).success ? null : "the data behind an image does not match the schema";
  const { spec, data } = (value ?? {}) as { spec?: unknown; data?: unknown };
  const isChart = chartSpecSchema.safeParse(spec).success && chartRowsSchema.safeParse(data).success;
  if (!isChart) return "the spec or the rows of a chart do not match the schema";
  const [fault] = checkChart(spec, data);
  return fault === undefined ? null : `a chart is wrong at ${fault.path}: ${fault.message}`;
}
