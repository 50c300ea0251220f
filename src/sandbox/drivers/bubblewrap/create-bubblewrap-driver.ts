import { randomBytes } from "node:crypto";
import { chown, mkdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { orAbort } from "../../../concurrency/or-abort.ts";
import { NoSandboxError } from "../../../errors/sluice-error.ts";
import { toHostCgroupDirectories } from "../../cgroup/host-cgroups.ts";
import { createLeaseCgroup, type LeaseCgroup } from "../../cgroup/lease-cgroup.ts";
import type { Lease, OpenOptions, Preflight, SandboxDriver, SandboxLimits, Snapshot } from "../../contract.ts";
import type { RunDirectory } from "../../run-directory.ts";
import { toZygotePath } from "./bwrap-arguments.ts";
import { MemoryWatcher } from "./memory-watcher.ts";
import { openBubblewrapLease, type Meter } from "./open-bubblewrap-lease.ts";
import { openZygote, type Zygote } from "./open-zygote.ts";
import { preflightBubblewrap } from "./preflight-bubblewrap.ts";

export interface BubblewrapOptions {
  readonly runDirectory: Pick<RunDirectory, "path" | "cgroups" | "recordProcess">;
}

/** Namespaces, seccomp, rlimits and a cgroup around forks of a Python process that has already imported the stack. */
export function createBubblewrapDriver(options: BubblewrapOptions): SandboxDriver {
  return new BubblewrapDriver(options);
}

/** The zygote's user when the host is root. Nothing on the host belongs to this uid. */
const zygoteUser = Object.freeze({ uid: 65532, gid: 65532 });

class BubblewrapDriver implements SandboxDriver {
  readonly name = "bubblewrap";
  readonly rollback = "fork";
  readonly #runDirectory: BubblewrapOptions["runDirectory"];
  readonly #user = process.getuid?.() === 0 ? zygoteUser : null;
  readonly #cgroupDirectories: readonly string[];
  /** An empty cgroup that keeps the host's cgroup directories: bwrap binds them, so they must not be removed and created again. */
  readonly #placeholder = `bw-keep-${randomBytes(4).toString("hex")}`;
  readonly #zygotes = new Map<string, Promise<Zygote>>();
  readonly #closing = new AbortController();
  #watcher: MemoryWatcher | null = null;

  constructor({ runDirectory }: BubblewrapOptions) {
    this.#runDirectory = runDirectory;
    this.#cgroupDirectories = toHostCgroupDirectories(runDirectory.cgroups);
  }

  preflight(): Promise<Preflight> {
    return preflightBubblewrap({ user: this.#user, cgroups: this.#runDirectory.cgroups });
  }

  async prepare({ snapshot, signal }: { snapshot: Snapshot; signal?: AbortSignal }): Promise<void> {
    await orAbort(this.#getZygote(snapshot), signal);
  }

  async open({ snapshot, limits, signal }: OpenOptions): Promise<Lease> {
    signal?.throwIfAborted();
    const id = `bw-${randomBytes(8).toString("hex")}`;
    const zygote = await orAbort(this.#getZygote(snapshot), signal);
    const meter = await this.#createMeter({ id, limits, zygote });
    return await openBubblewrapLease({ id, zygote, meter, limits, signal });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new NoSandboxError({ code: "DRIVER_CLOSED", message: "The bubblewrap driver was closed." }));
    await Promise.all([...this.#zygotes.values()].map(async (starting) => (await starting.catch(() => null))?.[Symbol.asyncDispose]()));
    // Fails when no zygote was started, or when the reaper was faster.
    for (const directory of this.#cgroupDirectories) await rmdir(join(directory, this.#placeholder)).catch(() => {});
    this.#watcher?.stop();
  }

  /** One zygote per snapshot. The next caller replaces one that died or failed to start. */
  async #getZygote(snapshot: Snapshot): Promise<Zygote> {
    const known = this.#zygotes.get(snapshot.id);
    const zygote = await known?.catch(() => undefined);
    if (zygote?.isAlive) return zygote;
    this.#closing.signal.throwIfAborted();
    if (this.#zygotes.get(snapshot.id) === known) this.#zygotes.set(snapshot.id, this.#startZygote(snapshot));
    return await this.#zygotes.get(snapshot.id)!;
  }

  /** Takes no caller's signal, because several callers may wait for the same zygote. */
  async #startZygote(snapshot: Snapshot): Promise<Zygote> {
    for (const directory of this.#cgroupDirectories) await mkdir(join(directory, this.#placeholder), { recursive: true, mode: 0o755 });
    const zygote = await openZygote({
      snapshot,
      directory: join(this.#runDirectory.path, `z${randomBytes(4).toString("hex")}`),
      cgroupDirectories: this.#cgroupDirectories,
      user: this.#user,
      signal: this.#closing.signal,
    });
    await this.#runDirectory.recordProcess(zygote.pid);
    return zygote;
  }

  async #createMeter({ id, limits, zygote }: { id: string; limits: SandboxLimits; zygote: Zygote }): Promise<Meter> {
    const { cgroups } = this.#runDirectory;
    if (!cgroups.available) return (this.#watcher ??= new MemoryWatcher()).watch({ limits, zygote });
    const owner = this.#user?.uid;
    const { memoryBytes, processes } = limits;
    const cgroup = await createLeaseCgroup({ cgroups, name: id, memoryBytes, processes, owner });
    const files = cgroups.version === 1 ? await allowTaskFiles(cgroup, owner) : cgroup.joinPaths;
    const joinPaths = files.map((path) => toZygotePath(this.#cgroupDirectories, path));
    return { ...cgroup, joinPaths, countsProcesses: true, begin: async () => {} };
  }
}

/**
 * Makes the `tasks` files of a version 1 cgroup writable for `owner` and returns their paths. A process with a single thread can join through `tasks`, which avoids
 * a lock that cgroup.procs takes against every fork on the machine: 5 ms or more in each of three hierarchies. Version 2 has one hierarchy and no such file.
 */
async function allowTaskFiles({ paths }: LeaseCgroup, owner: number | undefined): Promise<string[]> {
  const files = paths.map((path) => join(path, "tasks"));
  if (owner !== undefined) for (const file of files) await chown(file, owner, -1);
  return files;
}
