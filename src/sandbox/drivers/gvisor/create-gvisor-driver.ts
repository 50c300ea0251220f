import { accessSync, constants } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { orAbort } from "../../../concurrency/or-abort.ts";
import { NoSandboxError } from "../../../errors/sluice-error.ts";
import type { Lease, OpenOptions, Preflight, SandboxDriver, Snapshot } from "../../contract.ts";
import { defaultLimits } from "../../limits.ts";
import type { RunDirectory } from "../../run-directory.ts";
import { createGvisorLease, discardSandbox, greet, type StartedSandbox, startSandbox } from "./gvisor-lease.ts";
import { checkpointContainer, findImage, type MemoryImage, removeImage, saveImage, toImageKey } from "./memory-image.ts";
import { preflightGvisor, runscMissing } from "./preflight-gvisor.ts";
import { findRunsc, type Runsc, toRunscFlags, toRunscPrefix } from "./runsc.ts";

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
/** What a memory image takes on the disk, roughly. */
const IMAGE_BYTES = 200 * 1024 * 1024;
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** One user-space kernel per sandbox, restored from a memory image in which the stack is imported. */
export function createGvisorDriver(options: GvisorDriverOptions): SandboxDriver {
  return new GvisorDriver(options);
}

/** What a sandbox is started from. Without an image, because this machine cannot checkpoint, every sandbox is started cold. */
interface Prepared {
  readonly runsc: Runsc;
  readonly key: string;
  readonly image: MemoryImage | null;
}

type Wanted = Omit<OpenOptions, "networkPolicy">;

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
  #runsc: Promise<Runsc | null> | null = null;
  #coldReason: string | null = null;

  constructor(options: GvisorDriverOptions) {
    this.#options = options;
    this.name = options.rootless === true ? "gvisor-rootless" : "gvisor";
    this.#images = join(options.cacheDirectory, "images");
    this.#flags = toRunscFlags({ rootless: options.rootless === true });
  }

  preflight(): Promise<Preflight> {
    const { rootless = false, runDirectory } = this.#options;
    return preflightGvisor({
      locateRunsc: () => this.#locateRunsc(),
      rootless,
      cgroups: runDirectory.cgroups,
      coldReason: this.#coldReason,
    });
  }

  async prepare({ snapshot, signal }: { snapshot: Snapshot; signal?: AbortSignal }): Promise<void> {
    try {
      await this.#prepareImage({ snapshot, limits: defaultLimits, signal });
    } catch (error) {
      throw signal?.aborted === true ? aborted(signal) : cannotStart(error as Error);
    }
  }

  async open(wanted: OpenOptions): Promise<Lease> {
    if (this.#lifetime.signal.aborted) throw new NoSandboxError({ code: "DRIVER_CLOSED", message: "The gVisor driver was closed." });
    try {
      const prepared = await this.#prepareImage(wanted);
      return await this.#openLease(wanted, prepared).catch((error: Error) => this.#openFromNewImage(wanted, prepared, error));
    } catch (error) {
      throw wanted.signal?.aborted === true ? aborted(wanted.signal) : cannotStart(error as Error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#lifetime.abort(new Error("The driver was closed."));
    await Promise.allSettled(this.#prepared.values());
    await Promise.all([...this.#leases].map((lease) => lease.close()));
    while (this.#removals.size > 0) await Promise.all(this.#removals);
  }

  #locateRunsc(): Promise<Runsc | null> {
    const { runscPath, searchPath = SYSTEM_PATH, cacheDirectory } = this.#options;
    this.#runsc ??= findRunsc({ runscPath, searchPath, fallback: join(cacheDirectory, "tools", "runsc") });
    return this.#runsc;
  }

  async #requireRunsc(): Promise<Runsc> {
    const runsc = await this.#locateRunsc().catch(() => null);
    if (runsc !== null) return runsc;
    this.#runsc = null; // set-up may bring it while we live
    throw new NoSandboxError({ code: "RUNSC_MISSING", message: runscMissing.reason, hint: runscMissing.fix });
  }

  /** One preparation per image and driver, shared by whoever waits for it. A failed one is forgotten, so that the next caller tries again. */
  async #prepareImage({ snapshot, limits: { scratchBytes }, signal }: Wanted): Promise<Prepared> {
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

  async #findOrBuildImage(wanted: Wanted, runsc: Runsc, key: string): Promise<Prepared> {
    const existing = await findImage({ images: this.#images, key });
    if (existing !== null) return { runsc, key, image: existing };
    let sandbox: StartedSandbox | null = null;
    try {
      const make = async (directory: string): Promise<void> => {
        sandbox = await this.#start({ ...wanted, signal: this.#within(2 * START_TIMEOUT_MS) }, { runsc, image: null });
        await this.#checkpoint(sandbox, runsc, directory);
      };
      return { runsc, key, image: await saveImage({ images: this.#images, key, runDirectory: this.#options.runDirectory, make }) };
    } catch (error) {
      if (sandbox === null && !("syscall" in (error as Error))) throw error; // it did not start; there was nothing to save yet
      if (!(error instanceof CheckpointRefused)) throw imageFailed(this.#images, error as Error);
      this.#coldReason = error.message;
      return { runsc, key, image: null };
    } finally {
      if (sandbox !== null) await discardSandbox(sandbox);
    }
  }

  async #checkpoint(sandbox: StartedSandbox, runsc: Runsc, directory: string): Promise<void> {
    await checkpointContainer({
      runsc: this.#toCommand(runsc),
      state: this.#options.runDirectory.runscState,
      flags: this.#flags,
      containerId: sandbox.directory.id,
      directory,
      signal: this.#within(START_TIMEOUT_MS),
    }).catch(async (error: Error) => {
      // A full disk is for the operator to fix. Only a machine that cannot checkpoint starts every sandbox cold.
      const { bavail, bsize } = await statfs(directory);
      if (bavail * bsize < IMAGE_BYTES) throw new Error("ENOSPC: no space left on device", { cause: error });
      throw new CheckpointRefused(error.message);
    });
    await sandbox.process.exited;
  }

  #start({ snapshot, limits, signal }: Wanted & { signal: AbortSignal }, { runsc, image }: Omit<Prepared, "key">): Promise<StartedSandbox> {
    const { runDirectory } = this.#options;
    return startSandbox({ snapshot, limits, signal, image, runsc: this.#toCommand(runsc), flags: this.#flags, runDirectory });
  }

  #toCommand(runsc: Runsc): string[] {
    return [...toRunscPrefix({ rootless: this.#options.rootless === true }), runsc.path];
  }

  async #openLease(wanted: Wanted, prepared: Prepared): Promise<Lease> {
    const { limits } = wanted;
    const signal = this.#within(START_TIMEOUT_MS, wanted.signal);
    const sandbox = await this.#start({ ...wanted, signal }, prepared);
    try {
      await greet(sandbox, limits, signal);
    } catch (error) {
      await discardSandbox(sandbox);
      throw error;
    }
    const start = prepared.image === null ? "cold" : "restored";
    const lease = createGvisorLease({
      ...sandbox,
      driver: this.name,
      start,
      limits,
      runInBackground: (work) => this.#runInBackground(work),
    });
    this.#leases.add(lease);
    void lease.died.then(() => this.#leases.delete(lease));
    return lease;
  }

  /** An image that does not restore may be damaged, or of another kernel: it is made anew, once. */
  async #openFromNewImage(wanted: Wanted, { key, image }: Prepared, first: Error): Promise<Lease> {
    if (wanted.signal?.aborted === true || image === null || first instanceof NoSandboxError) throw first;
    this.#prepared.delete(key);
    await removeImage(image);
    try {
      return await this.#openLease(wanted, await this.#prepareImage(wanted));
    } catch (error) {
      throw cannotStart(error as Error, first);
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

class CheckpointRefused extends Error {}

function aborted(signal: AbortSignal): NoSandboxError {
  return new NoSandboxError({
    code: "OPEN_ABORTED",
    message: `Opening the gVisor sandbox was aborted: ${signal.reason instanceof Error ? signal.reason.message : String(signal.reason)}`,
    cause: signal.reason,
  });
}

function cannotStart(error: Error, first?: Error): NoSandboxError {
  if (error instanceof NoSandboxError) return error;
  return new NoSandboxError({
    code: "GVISOR_START",
    message:
      first === undefined
        ? error.message
        : `${error.message} (Its memory image was made anew before this; the first failure was: ${first.message})`,
    hint: "Run `sluice doctor` to see what this machine allows, or use the bubblewrap driver.",
    cause: error,
  });
}

function imageFailed(images: string, error: Error): NoSandboxError {
  if (error instanceof NoSandboxError) return error;
  return new NoSandboxError({
    code: "MEMORY_IMAGE",
    message: `The memory image could not be written to ${images}: ${whyNotWritable(images) ?? error.message}`,
    hint: "Check that the cache directory is writable and has some 200 MB free.",
    cause: error,
  });
}

/** Asks the nearest directory that is there: of a read-only one, a recursive mkdir says that it does not exist. */
function whyNotWritable(directory: string): string | null {
  try {
    accessSync(directory, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" && directory !== dirname(directory) ? whyNotWritable(dirname(directory)) : message;
  }
}
