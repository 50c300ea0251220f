import { spawn } from "node:child_process";
import type { Duplex, Readable } from "node:stream";
import { SluiceError } from "../../errors/sluice-error.ts";
import type { EngineOutcome, Script, EngineEnd } from "../contract.ts";
import { keepTail, signalName } from "../../processes/last-words.ts";
import { BASE_DATA_BYTES, type ChildCommand } from "./child-command.ts";
import { readChildFrames, type ChildFrame, type FrameBytes } from "./child-frames.ts";
import { ScriptRun } from "./script-run.ts";

/** A process with Monty in it. It runs one script at a time, and none after it has died or broken the protocol. */
export interface MontyChild {
  readonly memoryBytes: number;
  readonly pid: number;
  scripts(): number;
  isAlive(): boolean;
  /** Rejects with `signal.reason` only. */
  run(script: Script): Promise<EngineOutcome>;
  /** Settles when every process of it is gone. */
  readonly gone: Promise<void>;
  /** Resolves with `gone`. */
  kill(): Promise<void>;
}

const START_TIMEOUT_MS = 30_000;
/** Parameters of a call, and whatever else is not the result. */
const MAX_CALL_BYTES = 16 * 1024 * 1024;

export async function openMontyChild(command: ChildCommand, memoryBytes: number): Promise<MontyChild> {
  // Of the script's own memory Monty keeps count; the limit of the process is for what it does not count, and so it is wider.
  const child = spawn(command.file, command.arguments(BASE_DATA_BYTES + 2 * memoryBytes), {
    cwd: command.cwd,
    env: {},
    stdio: ["ignore", "ignore", "pipe", "pipe", ...(command.isolation === "namespaces" ? (["pipe", "pipe"] as const) : [])],
  });
  const channel = child.stdio[3] as Duplex;
  const filter = (child.stdio as readonly unknown[])[5] as Duplex | undefined;
  filter?.on("error", () => {}).end(command.seccomp);
  const readStderr = keepTail(child.stderr!);
  const info = child.stdio[4] as Readable | undefined;
  const readInfo = info === undefined ? () => "" : keepTail(info);
  const ready = Promise.withResolvers<void>();
  let death: ChildDeath | null = null;
  let violation: string | null = null;
  let isEnding = false;
  let current: ScriptRun | null = null;
  let isReady = false;
  let scripts = 0;

  channel.on("error", () => {}); // a child that dies while it is written to is reported by its exit
  const gone = new Promise<void>((resolve) => {
    child.once("close", (code, signal) => {
      death = { code, signal, stderr: readStderr(), violation };
      resolve();
    });
    child.once("error", (cause) => {
      death ??= { code: null, signal: null, stderr: cause.message, violation: null };
      resolve();
    });
  });
  readChildFrames(channel, {
    maxBodyBytes: () => Math.max(MAX_CALL_BYTES, current?.maxBodyBytes ?? 0),
    onFrame: receive,
    onBroken: (why) => stop(`sent ${why}`),
  });
  void gone.then(() => {
    channel.destroy();
    ready.reject(cannotStart(death!));
    current?.die(describeDeath(death!, memoryBytes));
  });
  const timer = setTimeout(() => stop("did not start in time"), START_TIMEOUT_MS);
  try {
    await ready.promise;
  } finally {
    clearTimeout(timer);
  }
  return { memoryBytes, pid: child.pid!, scripts: () => scripts, isAlive: () => death === null && !isEnding, gone, run, kill };

  function receive(frame: ChildFrame): void {
    if (!isReady && frame.type === "ready") {
      isReady = true;
      ready.resolve();
      return;
    }
    const wrong = current === null ? `a frame ${frame.type} while no script ran` : current.receive(frame);
    if (wrong !== null) stop(`sent ${wrong}`);
  }

  function stop(why: string): void {
    violation ??= why;
    end();
  }

  /** In namespaces the first process inside is killed, and with it all of them; bwrap then ends by itself, after them. */
  function end(): void {
    isEnding = true;
    const inner = Number(/"child-pid": (\d+)/.exec(readInfo())?.[1]);
    try {
      if (inner > 1 && death === null) process.kill(inner, "SIGKILL");
      else child.kill("SIGKILL");
    } catch {
      child.kill("SIGKILL");
    }
  }

  async function kill(): Promise<void> {
    if (death === null) end();
    await gone;
  }

  function send(frame: FrameBytes): void {
    if (frame.length > 1) channel.cork();
    for (const bytes of frame) channel.write(bytes);
    if (frame.length > 1) channel.uncork();
  }

  async function run(script: Script): Promise<EngineOutcome> {
    script.signal?.throwIfAborted();
    scripts += 1;
    const running = new ScriptRun({ script, send, stop: end });
    current = running;
    if (death !== null) running.die(describeDeath(death, memoryBytes));
    try {
      return await running.outcome;
    } finally {
      if (running.isKilled) await gone;
      current = null;
    }
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
