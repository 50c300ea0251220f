import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { nextMessage } from "../waiting/next-message.ts";
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
  let worker: Worker | null = null;
  let queue: Promise<unknown> = Promise.resolve();

  function ask<Answer>(question: ArtifactQuestion): Promise<Answer | "timeout" | "ended"> {
    const answer = queue.then(() => askNow<Answer>(question));
    queue = answer.catch(() => {});
    return answer;
  }

  async function askNow<Answer>(question: ArtifactQuestion): Promise<Answer | "timeout" | "ended"> {
    worker ??= start();
    const thread = worker;
    const answer = nextMessage<Answer>(thread, DEADLINE_MS);
    thread.postMessage(question);
    const found = await answer;
    if (found !== "timeout" && found !== "ended") return found;
    worker = null;
    await thread.terminate();
    return found;
  }

  async function check(png: Uint8Array): Promise<CheckedImage> {
    const found = await ask<PngFindings>({ kind: "png", bytes: png });
    if (found === "ended") return { ok: false, why: "is a PNG that does not decode" };
    if (found === "timeout") return { ok: false, why: `could not be decoded within ${DEADLINE_MS / 1000} s` };
    if (!found.ok) return found;
    if (found.blank) return { ok: false, why: "is blank: nothing was drawn that can be seen" };
    return { ok: true, width: found.width, height: found.height };
  }

  function start(): Worker {
    const thread = new Worker(join(import.meta.dirname, `check-artifacts-process${extname(import.meta.filename)}`), {
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    });
    thread.unref();
    thread.on("error", () => {}); // its end says the same
    return thread;
  }

  return {
    check,
    async judgeJson(kind, json) {
      if (json.length < SMALL_BYTES) return judgeJson(kind, json);
      const found = await ask<{ why: string | null }>({ kind, bytes: json });
      if (found === "ended" || found === "timeout") return `a ${kind} of ${json.length} bytes is too much to be looked at`;
      return found.why;
    },
    warm: () => {
      worker ??= start();
    },
    [Symbol.asyncDispose]: async () => void (await worker?.terminate()),
  };
}
