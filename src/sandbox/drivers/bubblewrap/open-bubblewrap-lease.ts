import { randomUUID } from "node:crypto";
import { NoSandboxError } from "../../../errors/sluice-error.ts";
import type { Death, FrameChannel, Lease, SandboxLimits, Usage } from "../../contract.ts";
import { orAbort } from "../../../concurrency/or-abort.ts";
import { describeExit, type Exit, type Fork, type ForkLimits, type Zygote } from "./open-zygote.ts";

/** What holds the sandbox as a whole to its limits and measures it: a cgroup, or a watcher where there is none. */
export interface Meter {
  /** Paths, as the zygote sees them, that the sandbox joins by itself. */
  readonly join: readonly string[];
  /** Whether the meter bounds the number of processes; if not, RLIMIT_NPROC does. */
  readonly countsProcesses: boolean;
  /** The sandbox is there; before this, nothing of the user's runs in it. */
  begin(fork: Fork): Promise<void>;
  usage(): Promise<Usage>;
  resetPeak(): Promise<void>;
  /** Kills what may be left, and removes what the meter made. */
  remove(): Promise<void>;
}

export interface LeaseOptions {
  readonly id: string;
  readonly zygote: Zygote;
  readonly meter: Meter;
  readonly limits: SandboxLimits;
  readonly signal?: AbortSignal;
}

const READY_TIMEOUT_MS = 30_000;

export async function openLease({ id, zygote, meter, limits, signal }: LeaseOptions): Promise<Lease> {
  const fork = zygote.fork({ lease: id, join: meter.join, limits: toForkLimits(limits, meter) });
  let channel: FrameChannel;
  try {
    channel = await orGiveUp(greet(fork), signal);
    await meter.begin(fork);
  } catch (error) {
    fork.kill();
    void fork.channel.then(
      (late) => late.close(),
      () => {},
    );
    await fork.exited;
    await meter.remove();
    throw error;
  }
  return createLease({ id, fork, channel, meter });
}

function toForkLimits(limits: SandboxLimits, { countsProcesses }: Meter): ForkLimits {
  return {
    memory_bytes: limits.memoryBytes,
    scratch_bytes: limits.scratchBytes,
    file_bytes: Math.max(limits.scratchBytes, limits.inputBytes), // inputs are kept in files in memory
    open_files: limits.openFiles,
    processes: countsProcesses ? null : limits.processes,
  };
}

/** The worker has answered: it is shut in, has its first cell process and a spare. */
async function greet(fork: Fork): Promise<FrameChannel> {
  const channel = await fork.channel;
  const nonce = randomUUID();
  await channel.send({ type: "hello", nonce, spare: true });
  const frame = await channel.receive();
  if (frame === null) throw notOpened(`It ended at once (${describeExit(await fork.exited)}).`);
  if (frame.header.type === "failed") throw notOpened(`It could not shut itself in: ${String(frame.header["detail"])}.`);
  if (frame.header.type !== "ready" || frame.header["nonce"] !== nonce) throw notOpened("It did not answer the greeting.");
  return channel;
}

async function orGiveUp<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(notOpened(`It was not ready after ${READY_TIMEOUT_MS / 1000} s.`)), READY_TIMEOUT_MS);
  try {
    return await orAbort(work, signal === undefined ? limit.signal : AbortSignal.any([signal, limit.signal]));
  } finally {
    clearTimeout(timer);
  }
}

function createLease({ id, fork, channel, meter }: { id: string; fork: Fork; channel: FrameChannel; meter: Meter }): Lease {
  let closing = false;
  let killsBefore = 0;
  let last: Usage = { peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };
  let removed: Promise<void> | undefined;

  const usage = async (): Promise<Usage> => {
    if (removed === undefined) last = await meter.usage();
    return last;
  };
  const died = fork.exited.then(async (exit): Promise<Death> => {
    const { memoryKills } = await usage().catch(() => last);
    removed = meter.remove().catch(() => {}); // what stays behind is cleared with the run directory
    if (closing || exit.closed) return { cause: "closed", detail: "The host closed the sandbox.", ...toHow(exit) };
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
    openedAt: Date.now(),
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
  const how = toHow(exit);
  if (exit.zygote !== undefined) return { cause: "killed", detail: `The sandbox is gone because ${describeExit(exit)}.`, ...how };
  if (ranOutOfMemory) return { cause: "out_of_memory", detail: `The sandbox ran out of memory (${describeExit(exit)}).`, ...how };
  if (exit.signal !== undefined) return { cause: "killed", detail: `The sandbox was killed (${describeExit(exit)}).`, ...how };
  return { cause: "exited", detail: `The worker ended by itself (${describeExit(exit)}).`, ...how };
}

function toHow({ exitCode, signal }: Exit): Pick<Death, "exitCode" | "signal"> {
  return { ...(exitCode === undefined ? {} : { exitCode }), ...(signal === undefined ? {} : { signal }) };
}

function notOpened(detail: string): NoSandboxError {
  return new NoSandboxError({ code: "SANDBOX_NOT_OPENED", message: `A bubblewrap sandbox could not be opened. ${detail}` });
}
