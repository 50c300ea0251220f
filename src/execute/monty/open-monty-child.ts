import { spawn, type ChildProcess } from "node:child_process";
import type { Duplex } from "node:stream";
import { SluiceError } from "../../errors/sluice-error.ts";
import type { EngineOutcome, Script, EngineEnd } from "../engine.ts";
import { keepTail, signalName } from "../../processes.ts";
import { BASE_DATA_BYTES, type ChildCommand } from "./child-command.ts";
import { readChildFrames, type ChildFrame, type FrameBytes } from "./child-frames.ts";
import { ScriptRun } from "./script-run.ts";

const START_TIMEOUT_MS = 30_000;
/** Parameters of a call, and whatever else is not the result. */
const MAX_CALL_BYTES = 16 * 1024 * 1024;

export async function openMontyChild(command: ChildCommand, memoryBytes: number): Promise<MontyChild> {
  const child = new MontyChild(command, memoryBytes);
  await child.ready();
  return child;
}

/** A process with Monty in it. It runs one script at a time, and none after it has died or broken the protocol. */
export class MontyChild {
  readonly memoryBytes: number;
  /** Settles when every process of it is gone. */
  readonly gone: Promise<void>;
  readonly #process: ChildProcess;
  readonly #channel: Duplex;
  readonly #readInfo: () => string;
  readonly #ready = Promise.withResolvers<void>();
  #isReady = false;
  #death: ChildDeath | null = null;
  #violation: string | null = null;
  #isEnding = false;
  #current: ScriptRun | null = null;
  #scripts = 0;

  constructor(command: ChildCommand, memoryBytes: number) {
    this.memoryBytes = memoryBytes;
    // Of the script's own memory Monty keeps count; the limit of the process is for what it does not count, and so it is wider.
    this.#process = spawn(command.file, command.arguments(BASE_DATA_BYTES + 2 * memoryBytes), {
      cwd: command.cwd,
      env: {},
      stdio: ["ignore", "ignore", "pipe", "pipe", ...(command.isolation === "namespaces" ? (["pipe", "pipe"] as const) : [])],
    });
    const [, , , channel, info, filter] = this.#process.stdio as readonly unknown[] as readonly (Duplex | undefined)[];
    filter?.on("error", () => {}).end(command.seccomp);
    this.#channel = channel!;
    this.#channel.on("error", () => {}); // a child that dies while it is written to is reported by its exit
    this.#readInfo = info === undefined ? () => "" : keepTail(info);
    this.gone = this.#watchDeath();
    readChildFrames(this.#channel, {
      maxBodyBytes: () => Math.max(MAX_CALL_BYTES, this.#current?.maxBodyBytes ?? 0),
      onFrame: (frame) => this.#receive(frame),
      onBroken: (why) => this.#stop(`sent ${why}`),
    });
  }

  get pid(): number {
    return this.#process.pid!;
  }

  scripts(): number {
    return this.#scripts;
  }

  isAlive(): boolean {
    return this.#death === null && !this.#isEnding;
  }

  /** Resolves when it can take a script. */
  async ready(): Promise<void> {
    const timer = setTimeout(() => this.#stop("did not start in time"), START_TIMEOUT_MS);
    await this.#ready.promise.finally(() => clearTimeout(timer));
  }

  /** Rejects with `signal.reason` only. */
  async run(script: Script): Promise<EngineOutcome> {
    script.signal?.throwIfAborted();
    this.#scripts += 1;
    const running = new ScriptRun({ script, send: (frame) => this.#send(frame), stop: () => this.#end() });
    this.#current = running;
    if (this.#death !== null) running.die(describeDeath(this.#death, this.memoryBytes));
    try {
      return await running.outcome;
    } finally {
      if (running.isKilled) await this.gone;
      this.#current = null;
    }
  }

  /** Resolves with `gone`. */
  async kill(): Promise<void> {
    if (this.#death === null) this.#end();
    await this.gone;
  }

  async #watchDeath(): Promise<void> {
    const readStderr = keepTail(this.#process.stderr!);
    this.#death = await new Promise<ChildDeath>((resolve) => {
      this.#process.once("close", (code, signal) => resolve({ code, signal, stderr: readStderr(), violation: this.#violation }));
      this.#process.once("error", ({ message }) => resolve({ code: null, signal: null, stderr: message, violation: null }));
    });
    this.#channel.destroy();
    this.#ready.reject(cannotStart(this.#death));
    this.#current?.die(describeDeath(this.#death, this.memoryBytes));
  }

  #receive(frame: ChildFrame): void {
    if (!this.#isReady && frame.type === "ready") {
      this.#isReady = true;
      this.#ready.resolve();
      return;
    }
    const wrong = this.#current === null ? `a frame ${frame.type} while no script ran` : this.#current.receive(frame);
    if (wrong !== null) this.#stop(`sent ${wrong}`);
  }

  #stop(why: string): void {
    this.#violation ??= why;
    this.#end();
  }

  /** In namespaces the first process inside is killed, and with it all of them; bwrap then ends by itself, after them. */
  #end(): void {
    this.#isEnding = true;
    const inner = Number(/"child-pid": (\d+)/.exec(this.#readInfo())?.[1]);
    try {
      if (inner > 1 && this.#death === null) process.kill(inner, "SIGKILL");
      else this.#process.kill("SIGKILL");
    } catch {
      this.#process.kill("SIGKILL");
    }
  }

  #send(frame: FrameBytes): void {
    if (frame.length > 1) this.#channel.cork();
    for (const bytes of frame) this.#channel.write(bytes);
    if (frame.length > 1) this.#channel.uncork();
  }
}

function cannotStart({ stderr, violation, code, signal }: ChildDeath): SluiceError {
  return new SluiceError({
    code: "MONTY_NOT_STARTED",
    message: `The process for Monty did not start: ${violation ?? (stderr.trim() || `it ended with ${signal ?? code}`)}`,
    hint: "Run `sluice doctor` to see what this machine can do.",
  });
}

interface ChildDeath {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
  /** Set when we ended it, for what it sent. */
  readonly violation: string | null;
}

/** Rust, the C++ library and V8 each have their own last words when there is no memory. */
const outOfMemory = /memory allocation of \d+ bytes failed|out of memory|std::bad_alloc|Cannot allocate memory|allocation failed/i;

/** Why a child died that nobody had told to. Only the kernel and we can be believed; stderr is the runtime's, which a script cannot write to. */
function describeDeath({ code, signal, stderr, violation }: ChildDeath, memoryBytes: number): EngineEnd {
  if (violation !== null) return { kind: "crashed", detail: `The interpreter's process was ended because it ${violation}.` };
  if (outOfMemory.test(stderr)) return { kind: "limit", limit: "memoryBytes", allowed: memoryBytes };
  const name = signal ?? (code === null ? null : signalName(code - 128)); // bwrap and shells tell of a signal as 128 and its number
  return { kind: "crashed", detail: `The interpreter's process died: ${name ?? `exit status ${code}`}.` };
}
