import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { nextMessage } from "../waiting/next-message.ts";
import type { PngFindings } from "./read-png.ts";

const DEADLINE_MS = 30_000;

export type CheckedImage = { ok: true; width: number; height: number } | { ok: false; why: string };

/** Decodes images off the main thread and says whether they may be shown. */
export interface ImageChecker extends AsyncDisposable {
  /** Images are read one at a time; the limit counts from when an image's turn comes, so that nobody's is refused because of another's. */
  check(bytes: Uint8Array): Promise<CheckedImage>;
  /** Starts the thread ahead of the first image. */
  warm(): void;
}

/** One thread for all images, started with the first, replaced when an image kills it or keeps it too long. An idle one does not keep the process alive. */
export function createImageChecker(): ImageChecker {
  let worker: Worker | null = null;
  let queue: Promise<unknown> = Promise.resolve();

  function check(bytes: Uint8Array): Promise<CheckedImage> {
    const answer = queue.then(() => checkNow(bytes));
    queue = answer.catch(() => {});
    return answer;
  }

  async function checkNow(bytes: Uint8Array): Promise<CheckedImage> {
    worker ??= start();
    const thread = worker;
    const answer = nextMessage<PngFindings>(thread, DEADLINE_MS);
    thread.postMessage(bytes);
    const found = await answer;
    if (found === "timeout" || found === "ended") {
      worker = null;
      await thread.terminate();
      return {
        ok: false,
        why: found === "ended" ? "is a PNG that does not decode" : `could not be decoded within ${DEADLINE_MS / 1000} s`,
      };
    }
    if (!found.ok) return found;
    if (found.blank) return { ok: false, why: "is blank: nothing was drawn that can be seen" };
    return { ok: true, width: found.width, height: found.height };
  }

  function start(): Worker {
    const thread = new Worker(join(import.meta.dirname, `read-png-process${extname(import.meta.filename)}`), {
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: 128 },
    });
    thread.unref();
    thread.on("error", () => {}); // its end says the same
    return thread;
  }

  return {
    check,
    warm: () => {
      worker ??= start();
    },
    [Symbol.asyncDispose]: async () => void (await worker?.terminate()),
  };
}
