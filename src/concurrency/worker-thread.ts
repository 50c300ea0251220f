import { extname } from "node:path";
import { parentPort, Worker, type ResourceLimits } from "node:worker_threads";
import { createLimiter } from "./create-limiter.ts";

export interface WorkerThreadOptions {
  /** Path of a program that calls `serveThread`, without its extension. */
  readonly program: string;
  /** Called whenever a thread starts. */
  readonly resourceLimits: () => ResourceLimits;
  /** Time limit for one answer, measured from when the thread receives the request. Default: none. */
  readonly timeoutMs?: number;
  /** Ends the thread after this long without a request. Default: never. */
  readonly idleMs?: number;
}

/** Why a thread or process gave no answer. `unavailable`: it did not start. `ended`: the request killed it, for example by running out of memory or stack. */
export class WorkerFailure extends Error {
  readonly reason: "timeout" | "ended" | "unavailable" | "closed";

  constructor(reason: WorkerFailure["reason"], cause?: Error) {
    super(cause?.message ?? `there was no answer: ${reason}`, { cause });
    this.reason = reason;
  }
}

const START_TIMEOUT_MS = 60_000;

/**
 * A thread that answers one request at a time. It starts with the first request and is replaced when a request kills it or takes too long. An idle thread
 * does not keep the process alive.
 */
export class WorkerThread<Request, Answer> implements AsyncDisposable {
  readonly #options: WorkerThreadOptions;
  readonly #requests = createLimiter({ places: 1 });
  #thread: Promise<Worker> | null = null;
  #idleTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: WorkerThreadOptions) {
    this.#options = options;
  }

  /** Rejects with a WorkerFailure. */
  async ask(request: Request, transfer: readonly ArrayBuffer[] = []): Promise<Answer> {
    const { idleMs } = this.#options;
    clearTimeout(this.#idleTimer);
    try {
      return await this.#requests.run(() => this.#askNow(request, transfer));
    } finally {
      if (this.#requests.taken === 0 && idleMs !== undefined) this.#idleTimer = setTimeout(() => void this.#end(), idleMs).unref();
    }
  }

  /** Starts the thread before the first request. */
  warm(): void {
    this.#thread ??= this.#start();
  }

  /** Ends the thread, even during a request. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #askNow(request: Request, transfer: readonly ArrayBuffer[]): Promise<Answer> {
    if (this.#isClosed) throw new WorkerFailure("closed");
    const worker = await (this.#thread ??= this.#start());
    const answer = nextMessage<Answer>(worker, this.#options.timeoutMs);
    worker.postMessage(request, transfer);
    return await answer.catch(async (failure: WorkerFailure) => {
      await this.#end();
      throw failure;
    });
  }

  #start(): Promise<Worker> {
    const { program, resourceLimits } = this.#options;
    const worker = new Worker(`${program}${extname(import.meta.filename)}`, { env: {}, resourceLimits: resourceLimits() });
    const started = nextMessage(worker, START_TIMEOUT_MS).then(
      () => worker,
      async (failure: WorkerFailure) => {
        await worker.terminate();
        throw new WorkerFailure("unavailable", failure);
      },
    );
    started.catch(() => {}); // every `ask` that waits for the thread rejects with this failure
    worker.on("error", () => {}); // `exit` follows
    worker.once("exit", () => {
      if (this.#thread === started) this.#thread = null;
    });
    return started;
  }

  async #end(): Promise<void> {
    clearTimeout(this.#idleTimer);
    const ending = this.#thread;
    this.#thread = null;
    await ending?.then((worker) => worker.terminate()).catch(() => {});
  }
}

/**
 * Runs inside the thread: answers each request. An exception ends the thread. `transfer` lists the buffers of an answer that are moved to the
 * caller instead of copied.
 */
export function serveThread<Answer>(
  answer: (request: never) => Answer,
  transfer: (answer: Answer) => readonly ArrayBuffer[] = () => [],
): void {
  parentPort!.on("message", (request) => {
    const answered = answer(request as never);
    parentPort!.postMessage(answered, transfer(answered));
  });
  parentPort!.postMessage("ready");
}

/** Waits for the next message of the worker. Keeps the process alive only while waiting. */
async function nextMessage<Message>(worker: Worker, timeoutMs?: number): Promise<Message> {
  const { promise, resolve, reject } = Promise.withResolvers<Message>();
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => reject(new WorkerFailure("timeout")), timeoutMs);
  let cause: Error | undefined;
  const onError = (error: unknown): void => void (cause = error as Error);
  const onExit = (): void => reject(new WorkerFailure("ended", cause));
  worker.ref();
  worker.once("message", resolve).once("error", onError).once("exit", onExit);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    worker.off("message", resolve).off("error", onError).off("exit", onExit);
    worker.unref();
  }
}
