import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { NoSandboxError } from "../../../errors/sluice-error.ts";
import { orAbort } from "../../../waiting/or-abort.ts";
import type { Lease, OpenOptions, SandboxDriver, SandboxLimits, Snapshot } from "../../contract.ts";
import { defaultLimits } from "../../limits.ts";
import type { RunDirectory } from "../../run-directory.ts";
import { findRunsc, type Runsc } from "./find-runsc.ts";
import { createGvisorLease } from "./gvisor-lease.ts";
import { checkpointContainer, findImage, heapDirectory, removeImage, saveImage, toImageKey, type MemoryImage } from "./memory-image.ts";
import { preflightGvisor, runscMissing } from "./preflight-gvisor.ts";
import { toRunscFlags, toRunscPrefix } from "./runsc-flags.ts";
import { aborted, cannotStart, imageFailed } from "./start-failures.ts";
import { discardSandbox, startSandbox, type StartedSandbox, type StartOptions } from "./start-sandbox.ts";
import { expectFrame, toHello } from "./worker-greeting.ts";

export interface GvisorDriverOptions {
  /** Holds `images/`, and `tools/runsc` where set-up put it. */
  readonly cacheDirectory: string;
  readonly runDirectory: RunDirectory;
  /** Default: the first on `searchPath`, else the cache's. */
  readonly runscPath?: string;
  readonly searchPath?: string;
  /** Without root. A mode with a name of its own, because it lacks cgroup limits. */
  readonly rootless?: boolean;
}

/** How long a sandbox may take to answer; a machine with all cores busy needs seconds. */
const START_TIMEOUT_MS = 60_000;
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** One user-space kernel per sandbox, restored from a memory image in which the stack is imported. */
export function createGvisorDriver({
  cacheDirectory,
  runDirectory,
  runscPath,
  searchPath = SYSTEM_PATH,
  rootless = false,
}: GvisorDriverOptions): SandboxDriver {
  const name = rootless ? "gvisor-rootless" : "gvisor";
  const images = join(cacheDirectory, "images");
  const flags = toRunscFlags({ rootless });
  const prefix = toRunscPrefix({ rootless });
  const leases = new Set<Lease>();
  const behind = new Set<Promise<void>>();
  const prepared = new Map<string, Promise<Prepared>>();
  let runscFound: Promise<Runsc | null> | null = null;
  let coldReason: string | null = null;
  const lifetime = new AbortController();

  function locateRunsc(): Promise<Runsc | null> {
    runscFound ??= findRunsc({ runscPath, searchPath, fallback: join(cacheDirectory, "tools", "runsc") });
    return runscFound;
  }

  async function requireRunsc(): Promise<Runsc> {
    const runsc = await locateRunsc().catch(() => null);
    if (runsc !== null) return runsc;
    runscFound = null; // set-up may bring it while we live
    throw new NoSandboxError({ code: "RUNSC_MISSING", message: runscMissing.reason, hint: runscMissing.fix });
  }

  function goBehind(work: Promise<void>): void {
    const quiet = work.catch(() => {}).finally(() => behind.delete(quiet));
    behind.add(quiet);
  }

  /** One preparation per image and driver, shared by whoever waits for it. A failed one is forgotten, so that the next caller tries again. */
  async function prepareImage({ snapshot, scratchBytes, signal }: PrepareOptions): Promise<Prepared> {
    const runsc = await requireRunsc();
    const key = await toImageKey({ snapshot, runsc, flags, scratchBytes });
    let pending = prepared.get(key);
    if (pending === undefined) {
      pending = makeReady({ snapshot, scratchBytes, runsc, key });
      prepared.set(key, pending);
      pending.catch(() => prepared.delete(key));
    }
    return await orAbort(pending, signal);
  }

  async function makeReady({ snapshot, scratchBytes, runsc, key }: BuildOptions): Promise<Prepared> {
    const existing = await findImage({ images, key });
    if (existing !== null) return { runsc, key, image: existing };
    return { runsc, key, image: await buildImage({ snapshot, scratchBytes, runsc, key }) };
  }

  /** Null when this machine cannot checkpoint: then every sandbox is started cold. */
  async function buildImage({ snapshot, scratchBytes, runsc, key }: BuildOptions): Promise<MemoryImage | null> {
    const limits: SandboxLimits = { ...defaultLimits, scratchBytes };
    let sandbox: StartedSandbox | null = null;
    try {
      return await saveImage({
        images,
        key,
        runDirectory,
        make: async (directory) => {
          sandbox = await start({
            snapshot,
            limits,
            runsc,
            image: null,
            newHeap: heapDirectory(directory),
            signal: within(2 * START_TIMEOUT_MS, lifetime.signal),
          });
          await checkpointContainer({
            runsc: [...prefix, runsc.path],
            state: runDirectory.runscState,
            flags,
            containerId: sandbox.directory.id,
            directory,
            signal: within(START_TIMEOUT_MS, lifetime.signal),
          }).catch((error: Error) => {
            throw new CheckpointRefused(error.message);
          });
          await sandbox.process.exited;
        },
      });
    } catch (error) {
      if (sandbox === null && !("syscall" in (error as Error))) throw error; // it did not start; there was nothing to save yet
      if (!(error instanceof CheckpointRefused)) throw imageFailed(images, error as Error);
      coldReason = error.message;
      return null;
    } finally {
      if (sandbox !== null) await discardSandbox(sandbox);
    }
  }

  function start({
    runsc,
    ...options
  }: Omit<StartOptions, "runsc" | "flags" | "runDirectory"> & { runsc: Runsc }): Promise<StartedSandbox> {
    return startSandbox({ ...options, runsc: [...prefix, runsc.path], flags, runDirectory });
  }

  async function openLease({ snapshot, limits, signal, ready }: OpenLeaseOptions): Promise<Lease> {
    const { runsc, image } = ready;
    const sandbox = await start({ snapshot, limits, runsc, image, signal });
    const { directory, cgroup, process, channel } = sandbox;
    try {
      const nonce = randomBytes(16).toString("hex");
      await channel.send(toHello({ nonce, limits })).catch(() => {}); // a worker that is gone is told by what follows
      const frame = await expectFrame({ channel, type: "ready", process, signal });
      if (frame.header["nonce"] !== nonce) throw new Error("The worker answered with another nonce than it was given.");
      await process.preferAsMemoryVictim();
    } catch (error) {
      await discardSandbox(sandbox);
      throw error;
    }
    const lease = createGvisorLease({
      driver: name,
      start: image === null ? "cold" : "restored",
      limits,
      directory,
      cgroup,
      process,
      channel,
      behind: goBehind,
    });
    leases.add(lease);
    void lease.died.then(() => leases.delete(lease));
    return lease;
  }

  async function open({ snapshot, limits, signal: callers }: OpenOptions): Promise<Lease> {
    if (lifetime.signal.aborted) throw new NoSandboxError({ code: "DRIVER_CLOSED", message: "The gVisor driver was closed." });
    let ready: Prepared | null = null;
    try {
      ready = await prepareImage({ snapshot, scratchBytes: limits.scratchBytes, signal: callers });
      return await openLease({ snapshot, limits, signal: within(START_TIMEOUT_MS, lifetime.signal, callers), ready });
    } catch (error) {
      if (callers?.aborted === true) throw aborted(callers);
      if (ready === null || ready.image === null || error instanceof NoSandboxError) throw cannotStart(error as Error);
      return await openFromNewImage({ snapshot, limits, callers, ready, first: error as Error });
    }
  }

  /** An image that does not restore may be damaged, or of another kernel: it is made anew, once. */
  async function openFromNewImage({ snapshot, limits, callers, ready, first }: RetryOptions): Promise<Lease> {
    prepared.delete(ready.key);
    await removeImage(ready.image!);
    try {
      const again = await prepareImage({ snapshot, scratchBytes: limits.scratchBytes, signal: callers });
      const signal = within(START_TIMEOUT_MS, lifetime.signal, callers);
      return await openLease({ snapshot, limits, signal, ready: again });
    } catch (error) {
      if (callers?.aborted === true) throw aborted(callers);
      throw cannotStart(error as Error, first);
    }
  }

  return {
    name,
    rollback: "replay",
    preflight: () => preflightGvisor({ locateRunsc, rootless, cgroups: runDirectory.cgroups, coldReason: () => coldReason }),
    open,
    async prepare({ snapshot, signal }) {
      await prepareImage({ snapshot, scratchBytes: defaultLimits.scratchBytes, signal }).catch((error: Error) => {
        throw signal?.aborted === true ? aborted(signal) : cannotStart(error);
      });
    },
    async [Symbol.asyncDispose]() {
      lifetime.abort(new Error("The driver was closed."));
      await Promise.allSettled(prepared.values());
      await Promise.all([...leases].map((lease) => lease.close()));
      while (behind.size > 0) await Promise.all(behind);
    },
  };
}

interface Prepared {
  readonly runsc: Runsc;
  readonly key: string;
  readonly image: MemoryImage | null;
}

interface PrepareOptions {
  readonly snapshot: Snapshot;
  readonly scratchBytes: number;
  readonly signal: AbortSignal | undefined;
}

interface BuildOptions {
  readonly snapshot: Snapshot;
  readonly scratchBytes: number;
  readonly runsc: Runsc;
  readonly key: string;
}

interface OpenLeaseOptions {
  readonly snapshot: Snapshot;
  readonly limits: SandboxLimits;
  readonly signal: AbortSignal;
  readonly ready: Prepared;
}

interface RetryOptions {
  readonly snapshot: Snapshot;
  readonly limits: SandboxLimits;
  readonly callers: AbortSignal | undefined;
  readonly ready: Prepared;
  readonly first: Error;
}

class CheckpointRefused extends Error {}

function within(timeoutMs: number, ...signals: (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any([AbortSignal.timeout(timeoutMs), ...signals.filter((signal) => signal !== undefined)]);
}
