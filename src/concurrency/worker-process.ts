import { spawn, type ChildProcess } from "node:child_process";
import { closeSync } from "node:fs";
import type { Socket } from "node:net";
import { extname } from "node:path";
import { keepTail } from "../processes.ts";
import { openBlockingFrames } from "./blocking-frames.ts";
import { createLimiter } from "./create-limiter.ts";
import { limitingShell, listInheritedDescriptors, toLimitedArguments } from "./limited-command.ts";
import { WorkerFailure } from "./worker-thread.ts";

export interface WorkerProcessOptions {
  /** Path of a program that calls `serveProcess`, without its extension. */
  readonly program: string;
  readonly heapMegabytes: number;
  /** Memory for buffers. The kernel limits the private memory of the process to the sum of heap, buffers and what Node itself needs. */
  readonly bufferMegabytes: number;
  /** Time limit for one answer, measured from when the process gets the request. */
  readonly timeoutMs: number;
}

/** What Node needs besides the heap: about 50 MB, and 512 MB of addresses for machine code, which count although they are almost empty. */
const NODE_MEGABYTES = 512 + 128;
const START_TIMEOUT_MS = 60_000;
const MAX_ANSWER_BYTES = 64 * 1024;
/** Standard streams and the channel. */
const CHANNEL = 3;
const PREFIX_BYTES = 4;

/**
 * A process for work on hostile bytes: with limited memory, an empty environment and no descriptor of ours except its channel. It answers one request at a
 * time, and tenants take turns. It starts with the first request and is killed and replaced when a request takes too long or breaks it; the other requests
 * continue. An idle process does not keep ours alive, and it exits when ours does, however ours ends.
 */
export class WorkerProcess implements AsyncDisposable {
  readonly #options: WorkerProcessOptions;
  readonly #requests = createLimiter({ places: 1 });
  #child: Child | null = null;
  #isClosed = false;

  constructor(options: WorkerProcessOptions) {
    this.#options = options;
  }

  /** The answer is JSON from a process that read hostile bytes: check it. Rejects with a WorkerFailure, or with `signal.reason` while it waits for its turn. */
  async ask(kind: string, body: Uint8Array, signal?: AbortSignal): Promise<unknown> {
    return await this.#requests.run(() => this.#askNow(kind, body), signal);
  }

  /** Starts the process before the first request. */
  warm(): void {
    if (!this.#isClosed) this.#obtain().ready.catch(() => {}); // the first request starts it again and gets the error
  }

  /** The running process, for tests and measurements. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Kills the process, even during a request. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#child?.kill(new WorkerFailure("closed"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #askNow(kind: string, body: Uint8Array): Promise<unknown> {
    if (this.#isClosed) throw new WorkerFailure("closed");
    const child = this.#obtain();
    await child.ready;
    return await child.exchange(kind, body);
  }

  #obtain(): Child {
    if (this.#child !== null) return this.#child;
    const child = new Child(this.#options);
    this.#child = child;
    void child.exited.then(() => {
      if (this.#child === child) this.#child = null;
    });
    return child;
  }
}

/** One process. After a failure it is dead or dying, and `exited` resolves soon. */
class Child {
  /** Rejects with a WorkerFailure `unavailable` if it did not start. */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  readonly #timeoutMs: number;
  readonly #process: ChildProcess;
  readonly #channel: Socket;
  #received = Buffer.alloc(0);
  #pending: PromiseWithResolvers<unknown> | null = null;
  #failure: WorkerFailure | null = null;

  constructor(options: WorkerProcessOptions) {
    this.#timeoutMs = options.timeoutMs;
    this.#process = start(options);
    const [, , stderr, channel] = this.#process.stdio as unknown as readonly [unknown, unknown, Socket, Socket];
    this.#channel = channel;
    const readStderr = keepTail(stderr.unref());
    this.exited = new Promise((resolve) => {
      this.#process.once("exit", () => resolve(this.#fail(new Error(readStderr() || "it ended"))));
      this.#process.once("error", (error) => resolve(this.#fail(error)));
    });
    channel.on("error", () => {}); // the end of the process is what counts
    channel.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.ready = this.#nextAnswer(START_TIMEOUT_MS).then(
      () => {},
      (cause: Error) => {
        throw new WorkerFailure("unavailable", cause);
      },
    );
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  exchange(kind: string, body: Uint8Array): Promise<unknown> {
    const head = Buffer.from(`${JSON.stringify({ kind })}\n`);
    const prefix = Buffer.alloc(PREFIX_BYTES);
    prefix.writeUInt32BE(head.length + body.length);
    const answer = this.#nextAnswer(this.#timeoutMs);
    if (this.#failure === null) for (const bytes of [prefix, head, body]) this.#channel.write(bytes);
    return answer;
  }

  async kill(failure: WorkerFailure): Promise<void> {
    this.#failure ??= failure;
    this.#process.ref();
    this.#process.kill("SIGKILL");
    await this.exited;
  }

  async #nextAnswer(timeoutMs: number): Promise<unknown> {
    if (this.#failure !== null) throw this.#failure;
    const pending = Promise.withResolvers<unknown>();
    this.#pending = pending;
    const timer = setTimeout(() => void this.kill(new WorkerFailure("timeout")), timeoutMs);
    for (const handle of [this.#process, this.#channel]) handle.ref();
    try {
      return await pending.promise;
    } finally {
      clearTimeout(timer);
      for (const handle of [this.#process, this.#channel]) handle.unref();
    }
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    if (this.#received.length < PREFIX_BYTES) return;
    const end = PREFIX_BYTES + this.#received.readUInt32BE(0);
    const [pending, received] = [this.#pending, this.#received];
    if (pending === null || end > MAX_ANSWER_BYTES || received.length > end) return this.#refuse();
    if (received.length < end) return;
    try {
      const { answer } = JSON.parse(received.toString("utf8", PREFIX_BYTES)) as { answer: unknown };
      this.#received = Buffer.alloc(0);
      this.#pending = null;
      pending.resolve(answer);
    } catch {
      this.#refuse();
    }
  }

  /** It sent something other than one answer for each request. */
  #refuse(): void {
    this.#channel.removeAllListeners("data").resume();
    void this.kill(new WorkerFailure("ended", new Error("it sent something that is not an answer")));
  }

  #fail(cause: Error): void {
    this.#failure ??= new WorkerFailure("ended", cause);
    this.#channel.destroy();
    this.#pending?.reject(this.#failure);
    this.#pending = null;
  }
}

function start({ program, heapMegabytes, bufferMegabytes }: WorkerProcessOptions): ChildProcess {
  const flags = ["--no-warnings", "--v8-pool-size=0", `--max-old-space-size=${heapMegabytes}`];
  const inherited = listInheritedDescriptors(CHANNEL).map(String);
  const command = [process.execPath, ...flags, `${program}${extname(import.meta.filename)}`, ...inherited];
  const dataBytes = (NODE_MEGABYTES + heapMegabytes + bufferMegabytes) * 1024 * 1024;
  const child = spawn(limitingShell, toLimitedArguments(dataBytes, command), {
    cwd: "/",
    env: {},
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  if ((child.stdio as readonly unknown[] | undefined)?.length === 4) return child;
  child.once("error", () => {});
  throw new WorkerFailure("unavailable", new Error("no descriptors are free for its pipes")); // EMFILE
}

/** Runs inside the process: answers each request, one at a time. An exception ends the process. The process also ends when the host closes the channel. */
export function serveProcess(answer: (kind: string, body: Buffer) => unknown): never {
  for (const descriptor of process.argv.slice(2)) closeSync(Number(descriptor));
  const { send, receive } = openBlockingFrames(CHANNEL);
  send({ answer: "ready" });
  for (let request = receive(); request !== null; request = receive())
    send({ answer: answer((request.header as { kind: string }).kind, request.body) });
  process.exit(0);
}
