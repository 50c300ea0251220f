import { join } from "node:path";
import { createWorkerThread, type ThreadFailure } from "../concurrency/worker-thread.ts";
import { judgeJson, type JsonKind } from "./judge-json.ts";
import type { PngFindings } from "./read-png.ts";

const DEADLINE_MS = 30_000;
/** What is smaller is looked at in less time than a thread takes to answer. */
const SMALL_BYTES = 65_536;

export type CheckedImage = { ok: true; width: number; height: number } | { ok: false; why: string };

export interface ArtifactQuestion {
  readonly kind: "png" | JsonKind;
  readonly bytes: Uint8Array;
}

/**
 * Looks at what a sandbox gives out, off the main thread, and says whether it may be shown. One thing is looked at at a time; the limit counts from when its turn
 * comes, so that nobody's is refused because of another's.
 */
export interface ImageChecker extends AsyncDisposable {
  check(png: Uint8Array): Promise<CheckedImage>;
  /** Why the JSON behind an image, or of a chart, is not what it is said to be; null when it is. */
  judgeJson(kind: JsonKind, json: Uint8Array): Promise<string | null>;
  /** Starts the thread ahead of the first artifact. */
  warm(): void;
}

/** One thread for all, started with the first, replaced when an artifact kills it or keeps it too long. An idle one does not keep the process alive. */
export function createImageChecker(): ImageChecker {
  const thread = createWorkerThread<ArtifactQuestion, unknown>({
    program: join(import.meta.dirname, "check-artifacts-process"),
    resourceLimits: () => ({ maxOldGenerationSizeMb: 256 }),
    timeoutMs: DEADLINE_MS,
  });

  return {
    async check(png) {
      try {
        const found = (await thread.ask({ kind: "png", bytes: png })) as PngFindings;
        if (!found.ok) return found;
        if (found.blank) return { ok: false, why: "is blank: nothing was drawn that can be seen" };
        return { ok: true, width: found.width, height: found.height };
      } catch (error) {
        const isSlow = (error as ThreadFailure).reason === "timeout";
        return { ok: false, why: isSlow ? `could not be decoded within ${DEADLINE_MS / 1000} s` : "is a PNG that does not decode" };
      }
    },
    async judgeJson(kind, json) {
      if (json.length < SMALL_BYTES) return judgeJson(kind, json);
      try {
        return (await thread.ask({ kind, bytes: json })) as string | null;
      } catch {
        return `a ${kind} of ${json.length} bytes is too much to be looked at`;
      }
    },
    warm: thread.warm,
    [Symbol.asyncDispose]: thread.close,
  };
}
