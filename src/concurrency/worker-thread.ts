import { extname } from "node:path";
import { parentPort, Worker, type ResourceLimits } from "node:worker_threads";
import { createLimiter } from "./create-limiter.ts";

export interface WorkerThreadOptions {
  /** The path of a program that calls `serveThread`, without its extension. */
  readonly program: string;
  /** Called when a thread starts. */
  readonly resourceLimits: () => ResourceLimits;
  /** For one answer, counted from when the thread begins with it. Default: no limit. */
  readonly timeoutMs?: number;
  /** End the thread when nothing was asked for this long. Default: keep it. */
  readonly idleMs?: number;
}

/**
 * A thread that answers one request at a time. It starts with the first request and is replaced when a request kills it or takes too long. An idle thread
 * does not keep the process alive.
 */
export interface WorkerThread<Request, Answer> extends AsyncDisposable {
  /** Rejects with a ThreadFailure. */
  ask(request: Request, transfer?: readonly ArrayBuffer[]): Promise<Answer>;
  /** Starts the thread ahead of the first request. */
  warm(): void;
  /** Ends the thread, also in the middle of a request. Idempotent. */
  close(): Promise<void>;
}

/** `unavailable`: the thread did not start. `ended`: it died of the request, for example for lack of memory or stack. */
export class ThreadFailure extends Error {
  readonly reason: "timeout" | "ended" | "unavailable" | "closed";

  constructor(reason: ThreadFailure["reason"], cause?: Error) {
    super(cause?.message ?? `the thread gave no answer: ${reason}`, { cause });
    this.reason = reason;
  }
}

const START_TIMEOUT_MS = 60_000;

export function createWorkerThread<Request, Answer>(options: WorkerThreadOptions): WorkerThread<Request, Answer> {
  const { program, resourceLimits, timeoutMs, idleMs } = options;
  let thread: Promise<Worker> | null = null;
  const requests = createLimiter({ places: 1 });
  let idle: NodeJS.Timeout | undefined;
  let isClosed = false;

  function start(): Promise<Worker> {
    const worker = new Worker(`${program}${extname(import.meta.filename)}`, { env: {}, resourceLimits: resourceLimits() });
    const started = nextMessage(worker, START_TIMEOUT_MS).then(
      () => worker,
      async (failure: ThreadFailure) => {
        await worker.terminate();
        throw new ThreadFailure("unavailable", failure);
      },
    );
    started.catch(() => {}); // each caller of `ask` gets the failure itself
    worker.on("error", () => {}); // `exit` follows
    worker.once("exit", () => {
      if (thread === started) thread = null;
    });
    return started;
  }

  async function askNow(request: Request, transfer: readonly ArrayBuffer[]): Promise<Answer> {
    if (isClosed) throw new ThreadFailure("closed");
    const worker = await (thread ??= start());
    const answer = nextMessage<Answer>(worker, timeoutMs);
    worker.postMessage(request, transfer);
    return await answer.catch(async (failure: ThreadFailure) => {
      await end();
      throw failure;
    });
  }

  async function end(): Promise<void> {
    clearTimeout(idle);
    const ending = thread;
    thread = null;
    await ending?.then((worker) => worker.terminate()).catch(() => {});
  }

  async function close(): Promise<void> {
    isClosed = true;
    await end();
  }

  return {
    async ask(request, transfer = []) {
      clearTimeout(idle);
      try {
        return await requests.run(() => askNow(request, transfer));
      } finally {
        if (requests.taken === 0 && idleMs !== undefined) idle = setTimeout(() => void end(), idleMs).unref();
      }
    },
    warm() {
      thread ??= start();
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Inside of a thread: answers each request. `transfer` names buffers of an answer to hand over instead of copying them. What throws ends the thread. */
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

/** Keeps the process alive while it waits, and only then. */
async function nextMessage<Message>(worker: Worker, timeoutMs?: number): Promise<Message> {
  const { promise, resolve, reject } = Promise.withResolvers<Message>();
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => reject(new ThreadFailure("timeout")), timeoutMs);
  let cause: Error | undefined;
  const onError = (error: unknown): void => void (cause = error as Error);
  const onExit = (): void => reject(new ThreadFailure("ended", cause));
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
