import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { orAbort } from "../../../concurrency/or-abort.ts";
import { NoSandboxError } from "../../../errors/sluice-error.ts";
import type { Lease, OpenOptions, Preflight, SandboxDriver, Snapshot } from "../../contract.ts";
import { defaultLimits } from "../../limits.ts";
import type { RunDirectory } from "../../run-directory.ts";
import { whyNotWritable } from "../../snapshot/to-cache-failure.ts";
import { discardSandbox, greet, GvisorLease, type StartedSandbox, startSandbox } from "./gvisor-lease.ts";
import { findImage, type MemoryImage, removeImage, saveImage, toImageKey } from "./memory-image.ts";
import { findRunsc, preflightGvisor, type Runsc, runscMissing } from "./runsc.ts";
import { ProcessStarter } from "./process-starter.ts";
import { toRunscFlags, toRunscPrefix } from "./runsc-process.ts";

export interface GvisorDriverOptions {
  /** Contains `images/`, and `tools/runsc` if set-up put it there. */
  readonly cacheDirectory: string;
  readonly runDirectory: RunDirectory;
  /** Default: the first one on `searchPath`, or the one in the cache. */
  readonly runscPath?: string;
  readonly searchPath?: string;
  /** Runs without root. The driver has a different name then, because it lacks cgroup limits. */
  readonly rootless?: boolean;
}

/** Time limit for a sandbox to answer. On a machine with all cores busy it takes seconds. */
const START_TIMEOUT_MS = 60_000;
/** Approximate size of a memory image on disk. */
const IMAGE_BYTES = 200 * 1024 * 1024;
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Each sandbox has its own user-space kernel and is restored from a memory image in which the stack is already imported. */
export function createGvisorDriver(options: GvisorDriverOptions): SandboxDriver {
  return new GvisorDriver(options);
}

/** Everything needed to start sandboxes. `image` is null when this machine cannot checkpoint; sandboxes are started cold then. */
interface Prepared {
  readonly runsc: Runsc;
  readonly key: string;
  readonly image: MemoryImage | null;
}

type SandboxRequest = Omit<OpenOptions, "networkPolicy">;

class GvisorDriver implements SandboxDriver {
  readonly name: "gvisor" | "gvisor-rootless";
  readonly rollback = "replay";
  readonly #options: GvisorDriverOptions;
  readonly #images: string;
  readonly #flags: readonly string[];
  readonly #leases = new Set<Lease>();
  readonly #removals = new Set<Promise<void>>();
  readonly #prepared = new Map<string, Promise<Prepared>>();
  readonly #lifetime = new AbortController();
  readonly #starter = new ProcessStarter();
  #runsc: Promise<Runsc | null> | null = null;
  #coldReason: string | null = null;

  constructor(options: GvisorDriverOptions) {
    this.#options = options;
    const { cacheDirectory, rootless = false } = options;
    this.name = rootless ? "gvisor-rootless" : "gvisor";
    this.#images = join(cacheDirectory, "images");
    this.#flags = toRunscFlags({ rootless });
  }

  preflight(): Promise<Preflight> {
    const { rootless = false, runDirectory } = this.#options;
    const locateRunsc = (): Promise<Runsc | null> => this.#locateRunsc();
    return preflightGvisor({ locateRunsc, rootless, cgroups: runDirectory.cgroups, coldReason: this.#coldReason });
  }

  async prepare({ snapshot, signal }: { snapshot: Snapshot; signal?: AbortSignal }): Promise<void> {
    try {
      await this.#prepareImage({ snapshot, limits: defaultLimits, signal });
    } catch (error) {
      throw signal?.aborted === true ? aborted(signal) : cannotStart(error as Error);
    }
  }

  async open(request: OpenOptions): Promise<Lease> {
    if (this.#lifetime.signal.aborted) throw new NoSandboxError({ code: "DRIVER_CLOSED", message: "The gVisor driver was closed." });
    try {
      const prepared = await this.#prepareImage(request);
      return await this.#openLease(request, prepared).catch((error: Error) => this.#openFromNewImage(request, prepared, error));
    } catch (error) {
      throw request.signal?.aborted === true ? aborted(request.signal) : cannotStart(error as Error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#lifetime.abort(new Error("The driver was closed."));
    await Promise.allSettled(this.#prepared.values());
    await Promise.all([...this.#leases].map((lease) => lease.close()));
    while (this.#removals.size > 0) await Promise.all(this.#removals);
    this.#starter[Symbol.dispose]();
  }

  #locateRunsc(): Promise<Runsc | null> {
    const { runscPath, searchPath = SYSTEM_PATH, cacheDirectory } = this.#options;
    this.#runsc ??= findRunsc({ runscPath, searchPath, cacheDirectory });
    return this.#runsc;
  }

  async #requireRunsc(): Promise<Runsc> {
    const runsc = await this.#locateRunsc().catch(() => null);
    if (runsc !== null) return runsc;
    this.#runsc = null; // look again next time: set-up may install it while we run
    throw new NoSandboxError({ code: "RUNSC_MISSING", message: runscMissing.reason, hint: runscMissing.fix });
  }

  /** Concurrent callers share one preparation per image. The next caller retries a failed one. */
  async #prepareImage({ snapshot, limits: { scratchBytes }, signal }: SandboxRequest): Promise<Prepared> {
    const runsc = await this.#requireRunsc();
    const key = await toImageKey({ snapshot, runsc, flags: this.#flags, scratchBytes });
    let pending = this.#prepared.get(key);
    if (pending === undefined) {
      pending = this.#findOrBuildImage({ snapshot, limits: { ...defaultLimits, scratchBytes } }, runsc, key);
      this.#prepared.set(key, pending);
      pending.catch(() => this.#prepared.delete(key));
    }
    return await orAbort(pending, signal);
  }

  async #findOrBuildImage(request: SandboxRequest, runsc: Runsc, key: string): Promise<Prepared> {
    const existing = await findImage({ images: this.#images, key });
    if (existing !== null) return { runsc, key, image: existing };
    let sandbox: StartedSandbox | null = null;
    try {
      const make = async (directory: string): Promise<void> => {
        sandbox = await this.#start({ ...request, signal: this.#within(2 * START_TIMEOUT_MS) }, { runsc, image: null });
        await this.#checkpoint(sandbox, directory);
      };
      return { runsc, key, image: await saveImage({ images: this.#images, key, runDirectory: this.#options.runDirectory, make }) };
    } catch (error) {
      if (sandbox === null && !("syscall" in (error as Error))) throw error; // the sandbox did not start: this is not a problem of the image
      if (!(error instanceof CheckpointFailed)) throw await imageFailed(this.#images, error as Error);
      this.#coldReason = error.message;
      return { runsc, key, image: null };
    } finally {
      if (sandbox !== null) await discardSandbox(sandbox);
    }
  }

  async #checkpoint(sandbox: StartedSandbox, directory: string): Promise<void> {
    await sandbox.process.checkpoint(directory, this.#within(START_TIMEOUT_MS)).catch(async (error: Error) => {
      // The operator must fix a full disk. Cold starts are only for machines that cannot checkpoint.
      const { bavail, bsize } = await statfs(directory);
      if (bavail * bsize < IMAGE_BYTES) throw new Error("ENOSPC: no space left on device", { cause: error });
      throw new CheckpointFailed(error.message);
    });
  }

  #start(
    { snapshot, limits, signal }: SandboxRequest & { signal: AbortSignal },
    { runsc, image }: Omit<Prepared, "key">,
  ): Promise<StartedSandbox> {
    const { runDirectory, rootless = false } = this.#options;
    const command = [...toRunscPrefix({ rootless }), runsc.path, ...this.#flags];
    return startSandbox({ snapshot, limits, signal, image, runsc: command, runDirectory, starter: this.#starter });
  }

  async #openLease(request: SandboxRequest, prepared: Prepared): Promise<Lease> {
    const { limits } = request;
    const signal = this.#within(START_TIMEOUT_MS, request.signal);
    const sandbox = await this.#start({ ...request, signal }, prepared);
    try {
      await greet(sandbox, limits, signal);
    } catch (error) {
      await discardSandbox(sandbox);
      throw error;
    }
    const start = prepared.image === null ? "cold" : "restored";
    const runInBackground = (work: Promise<void>): void => this.#runInBackground(work);
    const lease = new GvisorLease({ ...sandbox, driver: this.name, start, limits, runInBackground });
    this.#leases.add(lease);
    void lease.died.then(() => this.#leases.delete(lease));
    return lease;
  }

  /** An image that does not restore may be damaged or come from another kernel. Builds it again, once. */
  async #openFromNewImage(request: SandboxRequest, { key, image }: Prepared, firstError: Error): Promise<Lease> {
    if (request.signal?.aborted === true || image === null || firstError instanceof NoSandboxError) throw firstError;
    this.#prepared.delete(key);
    await removeImage(image);
    try {
      return await this.#openLease(request, await this.#prepareImage(request));
    } catch (error) {
      throw cannotStart(error as Error, firstError);
    }
  }

  #runInBackground(work: Promise<void>): void {
    const quiet = work.catch(() => {}).finally(() => this.#removals.delete(quiet));
    this.#removals.add(quiet);
  }

  #within(timeoutMs: number, signal?: AbortSignal): AbortSignal {
    return AbortSignal.any([AbortSignal.timeout(timeoutMs), this.#lifetime.signal, ...(signal === undefined ? [] : [signal])]);
  }
}

class CheckpointFailed extends Error {}

function aborted(signal: AbortSignal): NoSandboxError {
  return new NoSandboxError({
    code: "OPEN_ABORTED",
    message: `Opening the gVisor sandbox was aborted: ${signal.reason instanceof Error ? signal.reason.message : String(signal.reason)}`,
    cause: signal.reason,
  });
}

function cannotStart(error: Error, firstError?: Error): NoSandboxError {
  if (error instanceof NoSandboxError) return error;
  return new NoSandboxError({
    code: "GVISOR_START",
    message:
      firstError === undefined
        ? error.message
        : `${error.message} (This was the second attempt, with a new memory image. The first one failed: ${firstError.message})`,
    hint: "Run `sluice doctor` to see what this machine supports, or use the bubblewrap driver.",
    cause: error,
  });
}

async function imageFailed(images: string, error: Error): Promise<NoSandboxError> {
  if (error instanceof NoSandboxError) return error;
  return new NoSandboxError({
    code: "MEMORY_IMAGE",
    message: `The memory image could not be written to ${images}: ${(await whyNotWritable(images)) ?? error.message}`,
    hint: "Check that the cache directory is writable and has 200 MB free.",
    cause: error,
  });
}
