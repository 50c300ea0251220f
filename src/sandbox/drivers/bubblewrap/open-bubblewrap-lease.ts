import { randomUUID } from "node:crypto";
import { orAbort } from "../../../concurrency/or-abort.ts";
import { NoSandboxError } from "../../../errors/sluice-error.ts";
import type { Death, FrameChannel, Lease, SandboxLimits, Usage } from "../../contract.ts";
import { describeExit, type Exit, type Fork, type ForkLimits, type Zygote } from "./open-zygote.ts";

/** Limits and measures the sandbox as a whole: a cgroup, or the memory watcher where there is none. */
export interface Meter {
  /** The files through which the sandbox joins its cgroups, as paths inside the zygote. */
  readonly joinPaths: readonly string[];
  /** Whether the meter limits the number of processes. If not, RLIMIT_NPROC does. */
  readonly countsProcesses: boolean;
  /** Called when the worker has answered, before any user code runs. */
  begin(fork: Fork): Promise<void>;
  usage(): Promise<Usage>;
  resetPeak(): Promise<void>;
  /** Kills remaining processes and removes the meter's own resources. */
  remove(): Promise<void>;
}

export interface BubblewrapLeaseOptions {
  readonly id: string;
  readonly zygote: Zygote;
  readonly meter: Meter;
  readonly limits: SandboxLimits;
  readonly signal?: AbortSignal;
}

const READY_TIMEOUT_MS = 30_000;

/** Forks a sandbox from the zygote and waits for its worker. Leaves nothing behind on failure or abort. */
export async function openBubblewrapLease({ id, zygote, meter, limits, signal }: BubblewrapLeaseOptions): Promise<Lease> {
  let fork: Fork | undefined;
  let channel: FrameChannel;
  try {
    fork = zygote.fork({ lease: id, joinPaths: meter.joinPaths, limits: toForkLimits(limits, meter) });
    channel = await withTimeout(greet(fork, limits), signal);
    await meter.begin(fork);
  } catch (error) {
    fork?.kill();
    void fork?.channel.then(
      (lateChannel) => lateChannel.close(),
      () => {},
    );
    await fork?.exited;
    await meter.remove();
    throw error;
  }
  return createLease({ id, fork, channel, meter });
}

function toForkLimits(limits: SandboxLimits, { countsProcesses }: Meter): ForkLimits {
  return {
    memory_bytes: limits.memoryBytes,
    scratch_bytes: limits.scratchBytes,
    file_bytes: Math.max(limits.scratchBytes, limits.inputBytes), // inputs are files in memory
    open_files: limits.openFiles + WORKER_DESCRIPTORS,
    processes: countsProcesses ? null : limits.processes,
  };
}

/**
 * How many more descriptors the monitor may have than a cell process. The kernel refuses to send a descriptor over a socket when the user has more in
 * flight than the limit of the sender, so user code that has reached its own limit does not stop the monitor of any sandbox.
 */
const WORKER_DESCRIPTORS = 16_384;

/** Sends `hello` with the limits of cell processes and waits for the answer. The worker is confined then, and has its first cell process and a spare one. */
async function greet(fork: Fork, { openFiles }: SandboxLimits): Promise<FrameChannel> {
  const channel = await fork.channel;
  const nonce = randomUUID();
  await channel.send({ type: "hello", nonce, spare: true, rlimits: { NOFILE: openFiles } });
  const frame = await channel.receive();
  if (frame === null) throw notOpened(`The worker ended at once (${describeExit(await fork.exited)}).`);
  if (frame.header.type === "failed") throw notOpened(`The worker could not confine itself: ${String(frame.header["detail"])}.`);
  if (frame.header.type !== "ready" || frame.header["nonce"] !== nonce) throw notOpened("The worker did not answer the greeting.");
  return channel;
}

async function withTimeout<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const timeout = new AbortController();
  const timer = setTimeout(
    () => timeout.abort(notOpened(`The worker was not ready after ${READY_TIMEOUT_MS / 1000} s.`)),
    READY_TIMEOUT_MS,
  );
  try {
    return await orAbort(work, signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]));
  } finally {
    clearTimeout(timer);
  }
}

function createLease({ id, fork, channel, meter }: { id: string; fork: Fork; channel: FrameChannel; meter: Meter }): Lease {
  let closing = false;
  let killsBefore = 0;
  let lastUsage: Usage = { peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };
  let removed: Promise<void> | undefined;

  const usage = async (): Promise<Usage> => {
    if (removed === undefined) lastUsage = await meter.usage();
    return lastUsage;
  };
  const died = fork.exited.then(async (exit): Promise<Death> => {
    const { memoryKills } = await usage().catch(() => lastUsage);
    removed = meter.remove().catch(() => {}); // anything left is removed with the run directory
    const { exitCode, signal } = exit;
    if (closing || exit.closed) return { cause: "closed", detail: "The host closed the sandbox.", exitCode, signal };
    channel.close();
    return toDeath(exit, memoryKills > killsBefore);
  });
  const close = async (): Promise<void> => {
    closing = true;
    channel.close();
    fork.kill();
    await died;
  };

  return {
    id,
    driver: "bubblewrap",
    start: "forked",
    channel,
    died,
    usage,
    async resetPeak() {
      const before = await usage();
      killsBefore = before.memoryKills;
      if (removed === undefined) await meter.resetPeak();
      return before;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function toDeath(exit: Exit, ranOutOfMemory: boolean): Death {
  const { exitCode, signal } = exit;
  if (exit.zygote !== undefined) return { cause: "killed", detail: `The sandbox ended because ${describeExit(exit)}.`, exitCode, signal };
  if (ranOutOfMemory) return { cause: "out_of_memory", detail: `The sandbox ran out of memory (${describeExit(exit)}).`, exitCode, signal };
  if (signal !== undefined) return { cause: "killed", detail: `The sandbox was killed (${describeExit(exit)}).`, exitCode, signal };
  return { cause: "exited", detail: `The worker exited (${describeExit(exit)}).`, exitCode, signal };
}

function notOpened(detail: string): NoSandboxError {
  return new NoSandboxError({ code: "SANDBOX_NOT_OPENED", message: `A bubblewrap sandbox could not be opened. ${detail}` });
}
