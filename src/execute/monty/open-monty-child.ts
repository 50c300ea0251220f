import { spawn, type ChildProcess } from "node:child_process";
import type { Duplex } from "node:stream";
import { SluiceError } from "../../errors/sluice-error.ts";
import type { EngineOutcome, Script, EngineEnd } from "../engine.ts";
import { keepTail, signalName } from "../../processes.ts";
import { BASE_DATA_BYTES, type ChildCommand } from "./child-command.ts";
import { readChildFrames, type ChildFrame, type FrameBytes } from "./child-frames.ts";
import { ScriptRun } from "./script-run.ts";

const START_TIMEOUT_MS = 30_000;
/** Maximum body of any frame other than the result. */
const MAX_CALL_BYTES = 16 * 1024 * 1024;

/** Starts a child and waits until it can run scripts. */
export async function openMontyChild(command: ChildCommand, memoryBytes: number): Promise<MontyChild> {
  const child = new MontyChild(command, memoryBytes);
  await child.ready();
  return child;
}

/** A child process with Monty. Runs one script at a time, and none after it died or broke the protocol. */
export class MontyChild {
  readonly memoryBytes: number;
  /** How many scripts it has run or is running. */
  scriptCount = 0;
  /** Resolves when all of its processes have exited. */
  readonly exited: Promise<void>;
  readonly #process: ChildProcess;
  readonly #channel: Duplex;
  readonly #readInfo: () => string;
  readonly #ready = Promise.withResolvers<void>();
  #isReady = false;
  #exit: ChildExit | null = null;
  #violation: string | null = null;
  #isKilled = false;
  #current: ScriptRun | null = null;

  constructor(command: ChildCommand, memoryBytes: number) {
    this.memoryBytes = memoryBytes;
    // Monty counts the script's own memory. The limit of the process is wider, for memory that Monty does not count.
    this.#process = spawn(command.file, command.arguments(BASE_DATA_BYTES + 2 * memoryBytes), {
      cwd: command.cwd,
      env: {},
      stdio: ["ignore", "ignore", "pipe", "pipe", ...(command.isolation === "namespaces" ? (["pipe", "pipe"] as const) : [])],
    });
    const [, , , channel, info, filter] = this.#process.stdio as readonly unknown[] as readonly (Duplex | undefined)[];
    filter?.on("error", () => {}).end(command.seccomp);
    this.#channel = channel!;
    this.#channel.on("error", () => {}); // the exit of the child is reported by #watchExit
    this.#readInfo = info === undefined ? () => "" : keepTail(info);
    this.exited = this.#watchExit();
    readChildFrames(this.#channel, {
      maxBodyBytes: () => Math.max(MAX_CALL_BYTES, this.#current?.maxBodyBytes ?? 0),
      onFrame: (frame) => this.#receive(frame),
      onInvalid: (what) => this.#killFor(`sent ${what}`),
    });
  }

  get pid(): number {
    return this.#process.pid!;
  }

  isAlive(): boolean {
    return this.#exit === null && !this.#isKilled;
  }

  /** Resolves when the child can run a script. Rejects if it did not start. */
  async ready(): Promise<void> {
    const timer = setTimeout(() => this.#killFor("did not start in time"), START_TIMEOUT_MS);
    await this.#ready.promise.finally(() => clearTimeout(timer));
  }

  /** Rejects only with `signal.reason`. */
  async run(script: Script): Promise<EngineOutcome> {
    script.signal?.throwIfAborted();
    this.scriptCount += 1;
    const running = new ScriptRun({ script, send: (frame) => this.#send(frame), stop: () => this.#sendKill() });
    this.#current = running;
    if (this.#exit !== null) running.finish(describeExit(this.#exit, this.memoryBytes));
    try {
      return await running.outcome;
    } finally {
      if (running.isKilled) await this.exited;
      this.#current = null;
    }
  }

  /** Kills the child and waits until it has exited. */
  async kill(): Promise<void> {
    if (this.#exit === null) this.#sendKill();
    await this.exited;
  }

  async #watchExit(): Promise<void> {
    const readStderr = keepTail(this.#process.stderr!);
    this.#exit = await new Promise<ChildExit>((resolve) => {
      this.#process.once("close", (code, signal) => resolve({ code, signal, stderr: readStderr(), violation: this.#violation }));
      this.#process.once("error", ({ message }) => resolve({ code: null, signal: null, stderr: message, violation: null }));
    });
    this.#channel.destroy();
    this.#ready.reject(cannotStart(this.#exit));
    this.#current?.finish(describeExit(this.#exit, this.memoryBytes));
  }

  #receive(frame: ChildFrame): void {
    if (!this.#isReady && frame.type === "ready") {
      this.#isReady = true;
      this.#ready.resolve();
      return;
    }
    const violation = this.#current === null ? `a frame ${frame.type} while no script was running` : this.#current.receive(frame);
    if (violation !== null) this.#killFor(`sent ${violation}`);
  }

  #killFor(violation: string): void {
    this.#violation ??= violation;
    this.#sendKill();
  }

  /** With namespaces, kills the first process inside: the kernel then kills the others, and bwrap exits after them. */
  #sendKill(): void {
    this.#isKilled = true;
    const inner = Number(/"child-pid": (\d+)/.exec(this.#readInfo())?.[1]);
    try {
      if (inner > 1 && this.#exit === null) process.kill(inner, "SIGKILL");
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

function cannotStart({ stderr, violation, code, signal }: ChildExit): SluiceError {
  return new SluiceError({
    code: "MONTY_NOT_STARTED",
    message: `The Monty process did not start: ${violation ?? (stderr.trim() || `it exited with ${signal ?? code}`)}`,
    hint: "Run `sluice doctor` to see what this machine can do.",
  });
}

interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
  /** The broken protocol rule if the host killed it for that. */
  readonly violation: string | null;
}

/** Messages of Rust, the C++ library and V8 when memory runs out. */
const outOfMemory = /memory allocation of \d+ bytes failed|out of memory|std::bad_alloc|Cannot allocate memory|allocation failed/i;

/** Why a child died unexpectedly. Trusts only the exit status and stderr, which a script cannot write to. */
function describeExit({ code, signal, stderr, violation }: ChildExit, memoryBytes: number): EngineEnd {
  if (violation !== null) return { kind: "crashed", detail: `The interpreter's process was killed because it ${violation}.` };
  if (outOfMemory.test(stderr)) return { kind: "limit", limit: "memoryBytes", allowed: memoryBytes };
  const name = signal ?? (code === null ? null : signalName(code - 128)); // bwrap and shells report a signal as 128 plus its number
  return { kind: "crashed", detail: `The interpreter's process died: ${name ?? `exit status ${code}`}.` };
}
