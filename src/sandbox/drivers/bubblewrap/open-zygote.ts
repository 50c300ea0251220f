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

/** One bwrap with a Python that has the stack imported and forks sandboxes. When it ends, by whatever cause, its sandboxes end with it. */
export interface Zygote extends AsyncDisposable {
  readonly isAlive: boolean;
  /** The outer bwrap; the zygote is its only child. */
  readonly pid: number;
  fork(request: ForkRequest): Fork;
}

export interface ForkRequest {
  readonly lease: string;
  /** Files, as the zygote sees them, into which the fork writes "0" before anything else. */
  readonly join: readonly string[];
  readonly limits: ForkLimits;
}

/** Named as the Python side names them (confine.Limits). */
export interface ForkLimits {
  readonly memory_bytes: number;
  readonly scratch_bytes: number;
  readonly file_bytes: number;
  readonly open_files: number;
  readonly processes: number | null;
}

export interface Fork {
  /** Of process 1 of the sandbox, as the zygote sees it. Never settles if it could not be forked. */
  readonly pid: Promise<number>;
  /** The channel to a worker that is on its way into its namespaces. Rejects if it could not be forked or ended before it called. */
  readonly channel: Promise<FrameChannel>;
  /** Settles once, when process 1 of the sandbox, and so every process in it, is gone. */
  readonly exited: Promise<Exit>;
  kill(): void;
}

export interface Exit {
  readonly exitCode?: number;
  readonly signal?: string;
  /** Set when the zygote ended and took the sandbox with it. */
  readonly zygote?: string;
  /** The driver was closed while the sandbox was open. */
  readonly closed?: true;
}

export interface ZygoteOptions {
  readonly bwrapPath: string;
  readonly snapshot: Snapshot;
  /** A new directory of this zygote's own, removed at the end. */
  readonly directory: string;
  readonly cgroupDirectories: readonly string[];
  /** What the zygote becomes when this process is root. */
  readonly user: { readonly uid: number; readonly gid: number } | null;
  readonly signal: AbortSignal;
}

const START_TIMEOUT_MS = 120_000; // reading some 200 MB from a cold disk

/** Must be called on the main thread: the kernel takes the end of the thread that forked as the death of the parent. */
export async function openZygote({ bwrapPath, snapshot, directory, cgroupDirectories, user, signal }: ZygoteOptions): Promise<Zygote> {
  signal.throwIfAborted();
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const sockets = await openLeaseSocket({ directory, owner: user?.uid });
  const args = toBwrapArguments({ rootfs: snapshot.rootfs, socketDirectory: directory, cgroupDirectories, isRoot: user !== null });
  const child = spawn(bwrapPath, args, { stdio: ["pipe", "pipe", "pipe"], env: {}, cwd: "/" });
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
    if (frame.header.type !== "ready") throw new Error(`The zygote said ${JSON.stringify(frame.header.type)} instead of "ready".`);
  } catch (error) {
    await close();
    signal.throwIfAborted();
    throw notStarted(`${(error as Error).message} ${stderr()}`.trim(), error);
  }
  return serve({ control, sockets, ended, stderr, close, pid: child.pid! });
}

interface Running {
  forked(pid: number): void;
  resolve(exit: Exit): void;
  fail(error: Error): void;
}

interface Parts {
  readonly control: FrameChannel;
  readonly sockets: LeaseSocket;
  readonly ended: Promise<string>;
  stderr(): string;
  close(): Promise<void>;
  readonly pid: number;
}

function serve({ control, sockets, ended, stderr, close, pid }: Parts): Zygote {
  const running = new Map<string, Running>();
  let isAlive = true;
  let disposed = false;
  let closing: Promise<void> | undefined;

  const finish = (lease: string, exit: Exit): void => {
    const entry = running.get(lease);
    running.delete(lease);
    entry?.fail(notStarted(`The sandbox ended while it was being set up (${describeExit(exit)}). ${stderr()}`.trim()));
    entry?.resolve(exit);
  };
  const listen = async (): Promise<void> => {
    for (let frame; (frame = await control.receive()) !== null;) hear(frame);
  };
  const hear = ({ header }: Frame): void => {
    const lease = String(header["lease"]);
    if (header.type === "forked") running.get(lease)?.forked(Number(header["pid"]));
    else if (header.type === "exited") {
      const { exitCode, signal } = header as { exitCode?: number; signal?: string };
      finish(lease, { exitCode, signal });
    } else if (header.type === "refused") {
      running.get(lease)?.fail(notStarted(`The zygote could not fork: ${String(header["detail"])}.`));
      finish(lease, { exitCode: 1 });
    }
  };
  void listen()
    .catch(() => {})
    .then(async () => {
      isAlive = false;
      closing ??= close(); // also when it only closed its channel: nobody could ask it for anything any more
      const how = await ended;
      for (const lease of running.keys()) finish(lease, { zygote: how, ...(disposed ? { closed: true } : {}) });
    });

  return {
    pid,
    get isAlive() {
      return isAlive;
    },
    fork({ lease, join: joinPaths, limits }) {
      const call = sockets.expect(lease);
      const { promise: exited, resolve } = Promise.withResolvers<Exit>();
      const { promise: forkedPid, resolve: forked } = Promise.withResolvers<number>();
      running.set(lease, { forked, resolve, fail: call.cancel });
      control
        .send({ type: "open", lease, token: call.token, join: joinPaths, limits })
        .catch(async () => finish(lease, { zygote: await ended }));
      const kill = (): void => {
        if (running.has(lease)) control.send({ type: "kill", lease }).catch(() => {}); // then the zygote is gone, and so is the sandbox
      };
      return { pid: forkedPid, channel: call.channel, exited, kill };
    },
    async [Symbol.asyncDispose]() {
      disposed = true;
      isAlive = false;
      closing ??= close();
      await closing;
    },
  };
}

export function describeExit({ exitCode, signal, zygote }: Exit): string {
  if (zygote !== undefined) return `the zygote ended with ${zygote}`;
  return signal === undefined ? `exit status ${exitCode}` : `signal ${signal}`;
}

function architecture(): SeccompArchitecture {
  if (process.arch === "x64") return "x86_64";
  if (process.arch === "arm64") return "aarch64";
  throw notStarted(`There is no seccomp list for ${process.arch}.`);
}

function notStarted(detail: string, cause?: unknown): NoSandboxError {
  return new NoSandboxError({
    code: "BUBBLEWRAP_FAILED",
    message: `The bubblewrap driver could not start a sandbox. ${detail}`,
    hint: "Run `sluice doctor` to see what is missing on this machine.",
    cause,
  });
}

/** The socket to which forks of the zygote call back. Each expected call has a token of its own, which is good once. */
export interface LeaseSocket extends AsyncDisposable {
  expect(lease: string): ExpectedCall;
}

export interface ExpectedCall {
  readonly token: string;
  /** Rejects only by cancel(). */
  readonly channel: Promise<FrameChannel>;
  cancel(reason: Error): void;
}

interface Pending {
  readonly token: Buffer;
  resolve(channel: FrameChannel): void;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;

async function openLeaseSocket({ directory, owner }: { directory: string; owner?: number }): Promise<LeaseSocket> {
  const pending = new Map<string, Pending>();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {}); // seen by whoever reads
    void admit(socket, pending);
  });
  const path = join(directory, "leases.sock");
  server.listen({ path, backlog: 1024 });
  await once(server, "listening"); // rejects on "error"
  await chmod(path, 0o600);
  if (owner !== undefined) for (const each of [directory, path]) await chown(each, owner, -1);

  return {
    expect(lease) {
      const token = randomBytes(32);
      const { promise, resolve, reject } = Promise.withResolvers<FrameChannel>();
      promise.catch(() => {}); // cancelled before anyone waited
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

/** A call without the right token is not answered. */
async function admit(socket: Socket, pending: Map<string, Pending>): Promise<void> {
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

function isSameToken(expected: Buffer, given: unknown): boolean {
  const bytes = Buffer.from(typeof given === "string" ? given : "", "hex");
  return bytes.length === expected.length && timingSafeEqual(bytes, expected);
}
