import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import type { PngFindings } from "./read-png.ts";

const DEADLINE_MS = 30_000;

export type CheckedImage = { ok: true; width: number; height: number } | { ok: false; why: string };

/** Decodes images off the main thread and says whether they may be shown. */
export interface ImageChecker extends AsyncDisposable {
  check(bytes: Uint8Array): Promise<CheckedImage>;
  /** Starts the thread ahead of the first image. */
  warm(): void;
}

/** One thread for all images, started with the first, replaced when an image kills it or keeps it too long. It never keeps the process alive. */
export function createImageChecker(): ImageChecker {
  const waiting = new Map<number, (found: PngFindings) => void>();
  let worker: Worker | null = null;
  let asked = 0;

  function start(): Worker {
    const thread = new Worker(join(import.meta.dirname, `read-png-process${extname(import.meta.filename)}`), {
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: 128 },
    });
    thread.unref();
    thread.on("message", ({ id, found }: { id: number; found: PngFindings }) => settle(id, found));
    const end = (): void => {
      if (worker === thread) worker = null;
      for (const id of [...waiting.keys()]) settle(id, { ok: false, why: "is a PNG that does not decode" });
    };
    thread.once("error", end);
    thread.once("exit", end);
    return thread;
  }

  function settle(id: number, found: PngFindings): void {
    waiting.get(id)?.(found);
    waiting.delete(id);
  }

  async function check(bytes: Uint8Array): Promise<CheckedImage> {
    worker ??= start();
    const thread = worker;
    const id = (asked += 1);
    const { promise, resolve } = Promise.withResolvers<PngFindings>();
    waiting.set(id, resolve);
    thread.postMessage({ id, bytes });
    const timer = setTimeout(() => {
      settle(id, { ok: false, why: `could not be decoded within ${DEADLINE_MS / 1000} s` });
      void thread.terminate();
    }, DEADLINE_MS);
    const found = await promise.finally(() => clearTimeout(timer));
    if (!found.ok) return found;
    if (found.blank) return { ok: false, why: "is blank: nothing was drawn that can be seen" };
    return { ok: true, width: found.width, height: found.height };
  }

  return {
    check,
    warm: () => {
      worker ??= start();
    },
    [Symbol.asyncDispose]: async () => void (await worker?.terminate()),
  };
}
