import { join } from "node:path";
import { z } from "zod";
import { WorkerProcess } from "../concurrency/worker-process.ts";
import { WorkerFailure } from "../concurrency/worker-thread.ts";
import { chartRowsSchema, chartSpecSchema, maxChartRows } from "../protocol/chart-spec.ts";
import { checkChart } from "../protocol/check-chart.ts";
import { figureSchema } from "../protocol/figure.ts";
import { clipText, ellipsize } from "../text/clip-text.ts";
import { parseJson } from "../text/json.ts";
import { matchesSchema } from "./matches-schema.ts";

const DEADLINE_MS = 30_000;
/** Smaller JSON is checked faster on the main thread than a round trip to the process takes. */
const SMALL_JSON_BYTES = 65_536;
const MAX_REASON_CHARACTERS = 1_000;

const reason = z.string().max(MAX_REASON_CHARACTERS);
const pngFindings = z.discriminatedUnion("ok", [
  z.object({ ok: z.literal(true), width: z.int().positive(), height: z.int().positive(), blank: z.boolean() }),
  z.object({ ok: z.literal(false), why: reason }),
]);
const jsonFindings = z.object({ why: reason.nullable() });

type CheckedPng = { ok: true; width: number; height: number } | { ok: false; why: string };

/** `figure`: the data behind a picture. `chart`: a chart's spec and rows. */
export type ArtifactJsonKind = "figure" | "chart";

/**
 * Checks whether bytes from a sandbox are what they claim to be. Pictures and large JSON are read in one process with limited memory, one at a time, and
 * tenants take turns. What breaks that process fails alone: the others are checked in a new one. A caller that aborts gives up its turn.
 */
export interface ArtifactChecker extends AsyncDisposable {
  checkPng(png: Uint8Array, signal?: AbortSignal): Promise<CheckedPng>;
  /** Returns why the JSON is not a valid figure or chart, or null if it is. */
  checkJson(kind: ArtifactJsonKind, json: Uint8Array, signal?: AbortSignal): Promise<string | null>;
  /** Starts the process before the first artifact arrives. */
  warm(): void;
  /** The process, for tests and measurements. */
  readonly pid: number | undefined;
}

export function createArtifactChecker(): ArtifactChecker {
  const checking = new WorkerProcess({
    program: join(import.meta.dirname, "artifact-checker-process"),
    heapMegabytes: 256,
    bufferMegabytes: 256, // the pixels of the largest picture have 200 MB
    timeoutMs: DEADLINE_MS,
  });

  return {
    async checkPng(png, signal) {
      try {
        const findings = pngFindings.parse(await checking.ask("png", png, signal));
        if (!findings.ok) return findings;
        if (findings.blank) return { ok: false, why: "is blank: nothing visible was drawn" };
        return { ok: true, width: findings.width, height: findings.height };
      } catch (error) {
        return { ok: false, why: whyUnchecked(error, { late: "could not be decoded", broken: "is a PNG that cannot be decoded" }) };
      }
    },
    async checkJson(kind, json, signal) {
      if (json.length <= SMALL_JSON_BYTES) return checkArtifactJson(kind, json);
      try {
        return jsonFindings.parse(await checking.ask(kind, json, signal)).why;
      } catch (error) {
        const subject = `a ${kind} of ${json.length} bytes`;
        return whyUnchecked(error, { late: `${subject} could not be checked`, broken: `${subject} is too large to be checked` });
      }
    },
    warm: () => checking.warm(),
    get pid() {
      return checking.pid;
    },
    [Symbol.asyncDispose]: () => checking.close(),
  };
}

function whyUnchecked(error: unknown, { late, broken }: { late: string; broken: string }): string {
  if (!(error instanceof WorkerFailure)) return broken;
  switch (error.reason) {
    case "timeout":
      return `${late} within ${DEADLINE_MS / 1000} s`;
    case "ended":
      return broken;
    case "closed":
      return `${late}: the runtime is closing`;
    case "unavailable":
      return `${late}: the process that checks artifacts did not start (${clipText(error.message, 200)})`;
  }
}

/** Returns why JSON from a sandbox is not a valid figure or chart, or null if it is. */
export function checkArtifactJson(kind: ArtifactJsonKind, bytes: Uint8Array): string | null {
  const value = parseJson(bytes);
  if (kind === "figure") return matchesSchema(figureSchema, value) ? null : "the data behind an image does not match the schema";
  const { spec, data } = (value ?? {}) as { spec?: unknown; data?: unknown };
  const hasFewRows = Array.isArray(data) && data.length <= maxChartRows;
  if (!hasFewRows || !matchesSchema(chartSpecSchema, spec) || !matchesSchema(chartRowsSchema, data))
    return "the spec or the rows of a chart do not match the schema";
  const [fault] = checkChart(spec, data);
  return fault === undefined ? null : ellipsize(`a chart is wrong at ${fault.path}: ${fault.message}`, MAX_REASON_CHARACTERS);
}
