import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { extname, join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

export interface StartRequest {
  readonly command: readonly string[];
  /** Files into which the process writes "0" before it runs the command, to join its cgroups. */
  readonly joinPaths: readonly string[];
}

export interface StartedProcess {
  readonly pid: number;
  /** Its stdin and stdout. */
  readonly channel: Socket;
  /** Settles when the process has exited. Never rejects. */
  readonly exited: Promise<ProcessExit>;
  /** Sends SIGKILL. */
  kill(): void;
}

export interface ProcessExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** The first and last 8 KB that the process and its children wrote to stderr. */
  readonly stderr: string;
}

/**
 * Starts processes without blocking this one. Starting a process copies the page tables of its parent, which takes 16 ms when the parent uses 500 MB, so
 * a small helper process does it. The first process is started directly: a command that needs only one sandbox does not wait for the helper.
 */
export class ProcessStarter implements Disposable {
  #isFirst = true;
  #helper: HelperProcess | null = null;

  async start(request: StartRequest): Promise<StartedProcess> {
    const started = await (this.#isFirst ? this.#startDirectly(request) : this.#startInHelper(request));
    started.channel.on("error", () => {}); // `exited` reports a process that ended
    started.channel.write(GO);
    return started;
  }

  #startDirectly(request: StartRequest): Promise<StartedProcess> {
    this.#isFirst = false;
    return startProcess(request);
  }

  #startInHelper(request: StartRequest): Promise<StartedProcess> {
    if (this.#helper?.isAlive !== true) this.#helper = new HelperProcess();
    return this.#helper.start(request);
  }

  /** Ends the helper, and with it every process that it started. Idempotent. */
  [Symbol.dispose](): void {
    this.#helper?.end();
  }
}

/**
 * Joins the cgroups, waits until the host has the channel (a byte written earlier could be read by the helper), connects stdin and stdout to it, and
 * replaces itself with the command.
 */
const JOIN_AND_EXEC =
  'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 125; shift; n=$((n-1)); done; read -r _ <&3 || exit 125; exec "$@" <&3 >&3 3>&-';
const GO = "\n";

/** Starts the process as a child of this one. It waits for a line on its channel before it runs the command. Rejects when it cannot be started. */
export async function startProcess({ command, joinPaths }: StartRequest): Promise<StartedProcess> {
  const child = spawn("/bin/sh", ["-c", JOIN_AND_EXEC, "sh", String(joinPaths.length), ...joinPaths, ...command], {
    stdio: ["ignore", "ignore", "pipe", "pipe"],
    detached: true, // Ctrl-C in a terminal must reach only the host, not the sandbox
    cwd: "/",
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
  });
  const stderr = collectStderr(child.stderr!);
  const exit = Promise.withResolvers<Omit<ProcessExit, "stderr">>();
  child.once("exit", (exitCode, signal) => exit.resolve({ exitCode, signal }));
  await once(child, "spawn");
  const exited = exit.promise.then(async (how) => {
    await Promise.race([stderr.ended, sleep(STDERR_GRACE_MS)]);
    return { ...how, stderr: stderr.text() };
  });
  return { pid: child.pid!, channel: child.stdio[3] as Socket, exited, kill: () => void child.kill("SIGKILL") };
}

/** From the host to the helper. */
export type HelperRequest = { readonly id: number } & ({ readonly start: StartRequest } | { readonly kill: true });
/** From the helper to the host. `pid` comes with the channel's socket. */
export type HelperAnswer = { readonly id: number } & (
  | { readonly pid: number }
  | { readonly exit: ProcessExit }
  | { readonly failure: string }
);

interface HelperStart {
  readonly started: PromiseWithResolvers<StartedProcess>;
  readonly exited: PromiseWithResolvers<ProcessExit>;
}

class HelperProcess {
  readonly #process: ChildProcess;
  readonly #starts = new Map<number, HelperStart>();
  #lastId = 0;

  constructor() {
    const program = join(import.meta.dirname, `helper-process${extname(import.meta.filename)}`);
    this.#process = fork(program, [], {
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      detached: true,
      cwd: "/",
      env: {},
      execArgv: ["--no-warnings"],
    });
    this.#process.on("message", (answer: HelperAnswer, socket?: Socket) => this.#onAnswer(answer, socket));
    this.#process.once("error", (error) => this.#onEnd(error.message));
    this.#process.once("disconnect", () => this.#onEnd("it ended"));
  }

  get isAlive(): boolean {
    return this.#process.connected;
  }

  start(request: StartRequest): Promise<StartedProcess> {
    const id = (this.#lastId += 1);
    const start = { started: Promise.withResolvers<StartedProcess>(), exited: Promise.withResolvers<ProcessExit>() };
    this.#starts.set(id, start);
    this.#send({ id, start: request });
    return start.started.promise;
  }

  end(): void {
    if (this.isAlive) this.#process.disconnect();
  }

  #send(request: HelperRequest): void {
    if (this.isAlive) this.#process.send(request, () => {}); // "disconnect" reports a failure
  }

  #onAnswer(answer: HelperAnswer, channel: Socket | undefined): void {
    const { id } = answer;
    const start = this.#starts.get(id);
    if (start === undefined) return;
    if ("pid" in answer && channel !== undefined) {
      const kill = (): void => this.#send({ id, kill: true });
      start.started.resolve({ pid: answer.pid, channel, exited: start.exited.promise, kill });
    } else if ("exit" in answer) {
      this.#starts.delete(id);
      start.exited.resolve(answer.exit);
    } else {
      this.#starts.delete(id);
      start.started.reject(new Error("failure" in answer ? answer.failure : "The channel to the process was lost."));
    }
  }

  /** Its processes end with it: their commands begin with `setpriv --pdeathsig KILL`. */
  #onEnd(why: string): void {
    for (const { started, exited } of this.#starts.values()) {
      started.reject(new Error(`The process that starts sandboxes is gone: ${why}.`));
      exited.resolve({ exitCode: null, signal: "SIGKILL", stderr: "" });
    }
    this.#starts.clear();
  }
}

const STDERR_BYTES = 8 * 1024;
/** How long to wait for the end of stderr after the exit: a surviving child can keep it open. */
const STDERR_GRACE_MS = 20;

function collectStderr(stream: Readable): { readonly text: () => string; readonly ended: Promise<void> } {
  let head = "";
  let tail = "";
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    const room = STDERR_BYTES - head.length;
    head += text.slice(0, room);
    tail = (tail + text.slice(room)).slice(-STDERR_BYTES);
  });
  stream.on("error", () => {});
  stream.once("close", resolve);
  return { text: () => head + tail, ended };
}
