import { spawn } from "node:child_process";
import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { chmod, chown, mkdir, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { orAbort } from "../../../concurrency/or-abort.ts";
import { NoSandboxError } from "../../../errors/sluice-error.ts";
import { keepTail } from "../../../processes.ts";
import type { Frame, FrameChannel, Snapshot } from "../../contract.ts";
import { createFrameChannel } from "../../frame-channel.ts";
import type { SeccompArchitecture } from "../../seccomp/syscall-numbers.ts";
import { toBpf } from "../../seccomp/to-bpf.ts";
import { toBwrapArguments } from "./bwrap-arguments.ts";
import { type OuterId, reserveOuterId } from "./outer-id.ts";

/** A Python process in bwrap that has imported the stack and forks sandboxes. When it ends, for any reason, its sandboxes end too. */
export interface Zygote extends AsyncDisposable {
  readonly isAlive: boolean;
  /** The pid of bwrap. The zygote is its only child. */
  readonly pid: number;
  fork(request: ForkRequest): Fork;
}

interface ForkRequest {
  readonly lease: string;
  /** Files into which the fork writes "0" before anything else, to join its cgroups. Paths inside the zygote. */
  readonly joinPaths: readonly string[];
  readonly limits: ForkLimits;
}

/** The names are those of `confine.Limits` in Python. */
export interface ForkLimits {
  readonly memory_bytes: number;
  readonly scratch_bytes: number;
  readonly file_bytes: number;
  readonly open_files: number;
  readonly processes: number | null;
}

export interface Fork {
  /** The pid of process 1 of the sandbox, in the zygote's namespace. Never settles if the fork failed. */
  readonly pid: Promise<number>;
  /** The channel to the worker, which is still being confined. Rejects if the fork failed or the worker ended before it connected. */
  readonly channel: Promise<FrameChannel>;
  /** Settles once, when process 1 of the sandbox, and with it every other process, has ended. */
  readonly exited: Promise<Exit>;
  kill(): void;
}

export interface Exit {
  readonly exitCode?: number;
  readonly signal?: string;
  /** How the zygote ended, if that ended the sandbox. */
  readonly zygote?: string;
  /** Whether the driver was closed while the sandbox was open. */
  readonly closed?: boolean;
}

export interface ZygoteOptions {
  readonly snapshot: Snapshot;
  /** A directory for this zygote only. It is created, and removed at the end. */
  readonly directory: string;
  readonly cgroupDirectories: readonly string[];
  /** The user that the zygote switches to when this process is root. Each sandbox then gets an outer id of its own; otherwise all share the current user's. */
  readonly user: { readonly uid: number; readonly gid: number } | null;
  readonly signal: AbortSignal;
}

const START_TIMEOUT_MS = 120_000; // it may have to read 200 MB from a cold disk

/**
 * Starts the zygote and waits until it has imported the stack. Call it only on the main thread: with `--die-with-parent`, the zygote dies when the
 * thread that started it ends.
 */
export async function openZygote({ snapshot, directory, cgroupDirectories, user, signal }: ZygoteOptions): Promise<Zygote> {
  signal.throwIfAborted();
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const sockets = await openLeaseSocket({ directory, owner: user?.uid });
  const args = toBwrapArguments({ rootfs: snapshot.rootfs, socketDirectory: directory, cgroupDirectories, isRoot: user !== null });
  const child = spawn("bwrap", args, { stdio: ["pipe", "pipe", "pipe"], env: {}, cwd: "/" });
  const stderr = keepTail(child.stderr);
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(`bwrap could not be started: ${error.message}`));
    child.once("close", (code, killed) => resolve(killed === null ? `exit status ${code}` : `signal ${killed}`));
  });
  const close = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
    await sockets[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
  };
  const control = createFrameChannel({ readable: child.stdout, writable: child.stdin });
  try {
    await control.send({ type: "setup", ...user }, toBpf(architecture()));
    const frame = await orAbort(control.receive(), AbortSignal.any([signal, AbortSignal.timeout(START_TIMEOUT_MS)]));
    if (frame === null) throw new Error(`The zygote ended with ${await ended}.`);
    if (frame.header.type !== "ready") throw new Error(`The zygote sent ${JSON.stringify(frame.header.type)} instead of "ready".`);
  } catch (error) {
    await close();
    signal.throwIfAborted();
    throw notStarted(`${(error as Error).message} ${stderr()}`.trim(), error);
  }
  return new RunningZygote({ control, sockets, ended, stderr, close, pid: child.pid!, canMapUsers: user !== null });
}

interface ZygoteParts {
  readonly control: FrameChannel;
  readonly sockets: LeaseSocket;
  /** How bwrap ended. */
  readonly ended: Promise<string>;
  stderr(): string;
  close(): Promise<void>;
  readonly pid: number;
  /** Whether the zygote may give each sandbox a user of its own. */
  readonly canMapUsers: boolean;
}

interface RunningFork {
  readonly outerId: OuterId | null;
  onForked(pid: number): void;
  onExited(exit: Exit): void;
  rejectChannel(error: Error): void;
}

class RunningZygote implements Zygote {
  readonly pid: number;
  readonly #parts: ZygoteParts;
  readonly #forks = new Map<string, RunningFork>();
  #isAlive = true;
  #wasDisposed = false;
  #closing: Promise<void> | undefined;

  constructor(parts: ZygoteParts) {
    this.pid = parts.pid;
    this.#parts = parts;
    void this.#handleFrames();
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  fork({ lease, joinPaths, limits }: ForkRequest): Fork {
    const { control, sockets, ended, canMapUsers } = this.#parts;
    const outerId = canMapUsers ? reserveOuterId() : null;
    const connection = sockets.expect(lease);
    const { promise: exited, resolve: onExited } = Promise.withResolvers<Exit>();
    const { promise: pid, resolve: onForked } = Promise.withResolvers<number>();
    this.#forks.set(lease, { outerId, onForked, onExited, rejectChannel: connection.cancel });
    control
      .send({ type: "open", lease, token: connection.token, join: joinPaths, limits, id: outerId?.id ?? null })
      .catch(async () => this.#finish(lease, { zygote: await ended }));
    const kill = (): void => {
      if (this.#forks.has(lease)) control.send({ type: "kill", lease }).catch(() => {}); // if the zygote is dead, so is the sandbox
    };
    return { pid, channel: connection.channel, exited, kill };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#wasDisposed = true;
    this.#isAlive = false;
    await (this.#closing ??= this.#parts.close());
  }

  /** Handles frames until the zygote ends, then ends all its forks. */
  async #handleFrames(): Promise<void> {
    const { control, ended, close } = this.#parts;
    try {
      for (let frame; (frame = await control.receive()) !== null;) this.#handleFrame(frame);
    } catch {
      // the zygote is unusable, as after the end of the channel
    }
    this.#isAlive = false;
    this.#closing ??= close(); // a zygote that only closed its channel is useless too
    const zygote = await ended;
    for (const lease of this.#forks.keys()) this.#finish(lease, { zygote, closed: this.#wasDisposed });
  }

  #handleFrame({ header }: Frame): void {
    const lease = String(header["lease"]);
    if (header.type === "forked") this.#forks.get(lease)?.onForked(Number(header["pid"]));
    else if (header.type === "exited") {
      const { exitCode, signal } = header as { exitCode?: number; signal?: string };
      this.#finish(lease, { exitCode, signal });
    } else if (header.type === "refused") {
      this.#forks.get(lease)?.rejectChannel(notStarted(`The zygote could not fork: ${String(header["detail"])}.`));
      this.#finish(lease, { exitCode: 1 });
    }
  }

  #finish(lease: string, exit: Exit): void {
    const fork = this.#forks.get(lease);
    this.#forks.delete(lease);
    fork?.outerId?.release();
    const detail = `The sandbox ended while it was being set up (${describeExit(exit)}). ${this.#parts.stderr()}`.trim();
    fork?.rejectChannel(notStarted(detail));
    fork?.onExited(exit);
  }
}

export function describeExit({ exitCode, signal, zygote }: Exit): string {
  if (zygote !== undefined) return `the zygote ended with ${zygote}`;
  return signal === undefined ? `exit status ${exitCode}` : `signal ${signal}`;
}

function architecture(): SeccompArchitecture {
  if (process.arch === "x64") return "x86_64";
  if (process.arch === "arm64") return "aarch64";
  throw notStarted(`No seccomp list exists for ${process.arch}.`);
}

function notStarted(detail: string, cause?: unknown): NoSandboxError {
  return new NoSandboxError({
    code: "BUBBLEWRAP_FAILED",
    message: `The bubblewrap driver could not start a sandbox. ${detail}`,
    hint: "Run `sluice doctor` to see what is missing on this machine.",
    cause,
  });
}

/** The socket to which forks of the zygote connect. Each expected connection has its own token, which is valid once. */
interface LeaseSocket extends AsyncDisposable {
  /** `channel` rejects only after `cancel`. */
  expect(lease: string): { readonly token: string; readonly channel: Promise<FrameChannel>; cancel(reason: Error): void };
}

interface PendingConnection {
  readonly token: Buffer;
  resolve(channel: FrameChannel): void;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;

async function openLeaseSocket({ directory, owner }: { directory: string; owner?: number }): Promise<LeaseSocket> {
  const pending = new Map<string, PendingConnection>();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {}); // the reader of the channel notices it
    void admit(socket, pending);
  });
  const path = join(directory, "leases.sock");
  server.listen({ path, backlog: 1024 });
  await once(server, "listening"); // rejects on "error"
  await chmod(path, 0o600);
  if (owner !== undefined) for (const owned of [directory, path]) await chown(owned, owner, -1);

  return {
    expect(lease) {
      const token = randomBytes(32);
      const { promise, resolve, reject } = Promise.withResolvers<FrameChannel>();
      promise.catch(() => {}); // it may be cancelled before anything waits for it
      pending.set(lease, { token, resolve });
      const cancel = (reason: Error): void => {
        pending.delete(lease);
        reject(reason);
      };
      return { token: token.toString("hex"), channel: promise, cancel };
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Closes connections that do not send the right token. */
async function admit(socket: Socket, pending: Map<string, PendingConnection>): Promise<void> {
  const channel = createFrameChannel({ readable: socket, writable: socket });
  const timer = setTimeout(() => channel.close(), HANDSHAKE_TIMEOUT_MS);
  try {
    const frame = await channel.receive();
    const { type, lease, token }: Record<string, unknown> = frame?.header ?? {};
    const expected = typeof lease === "string" ? pending.get(lease) : undefined;
    if (type !== "lease" || expected === undefined || !isSameToken(expected.token, token)) return channel.close();
    pending.delete(lease as string);
    expected.resolve(channel);
  } catch {
    channel.close();
  } finally {
    clearTimeout(timer);
  }
}

function isSameToken(expected: Buffer, received: unknown): boolean {
  const bytes = Buffer.from(typeof received === "string" ? received : "", "hex");
  return bytes.length === expected.length && timingSafeEqual(bytes, expected);
}
