import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { SluiceError } from "../../errors/sluice-error.ts";
import type { ThreadAnswer, ThreadRequest, ThreadResult } from "./reading-requests.ts";

/** A thread for large outputs. It starts with the first and ends when none has come for a while, so nobody has to close it; it never keeps a process alive. */
export interface ReadingThread {
  /** A number for what is read, and for the pieces of it. The thread is kept until `ask` or `drop` of the same number. */
  open(): number;
  /** Hands over a piece of a message. Its buffer is gone afterwards. */
  push(id: number, bytes: Uint8Array<ArrayBuffer>): void;
  ask(id: number, request: ThreadRequest, transfer?: readonly ArrayBuffer[]): Promise<ThreadResult>;
  drop(id: number): void;
  close(): Promise<void>;
}

export interface ReadingThreadOptions {
  readonly idleMs: number;
  /** Asked when a thread starts: how much memory there is, is read from files, and most conversations never need it. */
  readonly heapMegabytes: () => number;
}

export function createReadingThread({ idleMs, heapMegabytes }: ReadingThreadOptions): ReadingThread {
  let current: Thread | null = null;
  let idle: NodeJS.Timeout | undefined;
  let last = 0;
  /** Where the pieces of each have gone: what died with its thread is lost, whatever other thread there is now. */
  const threads = new Map<number, Thread>();

  function start(): Thread {
    const thread = startThread(heapMegabytes(), () => {
      if (current === thread) current = null;
    });
    return thread;
  }

  function forget(id: number): void {
    if (!threads.delete(id) || threads.size > 0) return;
    current?.worker.unref();
    idle = setTimeout(() => void end(), idleMs).unref();
  }

  async function end(): Promise<void> {
    clearTimeout(idle);
    const ending = current;
    current = null;
    await ending?.worker.terminate();
  }

  return {
    open() {
      clearTimeout(idle);
      current ??= start();
      current.worker.ref();
      threads.set(++last, current);
      return last;
    },
    push(id, bytes) {
      threads.get(id)?.worker.postMessage({ id, piece: bytes }, [bytes.buffer]);
    },
    async ask(id, request, transfer = []) {
      try {
        return await threads.get(id)!.ask(id, request, transfer);
      } finally {
        forget(id);
      }
    },
    drop(id) {
      threads.get(id)?.worker.postMessage({ id, isDropped: true });
      forget(id);
    },
    close: end,
  };
}

interface Thread {
  readonly worker: Worker;
  ask(id: number, request: ThreadRequest, transfer: readonly ArrayBuffer[]): Promise<ThreadResult>;
}

function startThread(heapMegabytes: number, onEnd: () => void): Thread {
  const program = join(import.meta.dirname, `read-output-process${extname(import.meta.filename)}`);
  const worker = new Worker(program, { env: {}, resourceLimits: { stackSizeMb: 4, maxOldGenerationSizeMb: heapMegabytes } });
  const waiting = new Map<number, PromiseWithResolvers<ThreadResult>>();
  let failure: Error | null = null;
  let isOver = false;
  worker.unref();
  worker.on("message", ({ id, ...answer }: ThreadAnswer & { readonly id: number }) => {
    const asked = waiting.get(id);
    waiting.delete(id);
    if (answer.ok) asked?.resolve(answer.result);
    else asked?.reject(answer.facts === null ? unreadable(answer.reason) : new SluiceError(answer.facts));
  });
  worker.on("error", (error) => (failure = error as Error));
  worker.on("exit", () => {
    isOver = true;
    onEnd();
    for (const { reject } of waiting.values()) reject(unreadable(reasonOf(failure)));
  });
  return {
    worker,
    ask(id, request, transfer) {
      if (isOver) return Promise.reject(unreadable(reasonOf(failure)));
      const asked = Promise.withResolvers<ThreadResult>();
      waiting.set(id, asked);
      worker.postMessage({ id, request }, transfer);
      return asked.promise;
    },
  };
}

function reasonOf(failure: Error | null): string {
  if (failure === null) return "the thread that reads it was ended";
  return failure.message;
}

function unreadable(reason: string): SluiceError {
  return new SluiceError({
    code: "OUTPUT_UNREADABLE",
    message: `The output could not be read: ${reason}.`,
    hint: "Ask the tool for less at a time.",
    details: { reason },
  });
}
