import { randomBytes } from "node:crypto";
import { chown, mkdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { NoSandboxError } from "../../../errors/sluice-error.ts";
import { toHostCgroupDirectories } from "../../cgroup/cgroup-files.ts";
import { createLeaseCgroup, type LeaseCgroup } from "../../cgroup/lease-cgroup.ts";
import type { Lease, OpenOptions, SandboxDriver, SandboxLimits, Snapshot } from "../../contract.ts";
import type { RunDirectory } from "../../run-directory.ts";
import { toZygotePath } from "./bwrap-arguments.ts";
import { preflightBubblewrap } from "./preflight-bubblewrap.ts";
import { createMemoryWatcher, type MemoryWatcher } from "./create-memory-watcher.ts";
import { openLease, type Meter } from "./open-bubblewrap-lease.ts";
import { orAbort } from "../../../concurrency/or-abort.ts";
import { openZygote, type Zygote } from "./open-zygote.ts";

export interface BubblewrapOptions {
  readonly runDirectory: Pick<RunDirectory, "path" | "cgroups" | "recordProcess">;
  /** "bwrap" on PATH unless given. */
  readonly bwrapPath?: string;
}

/** Who the zygote is when the host is root: nobody's uid, so that nothing on the host belongs to it. */
const zygoteUser: { readonly uid: number; readonly gid: number } = Object.freeze({ uid: 65532, gid: 65532 });

/** Namespaces, seccomp, rlimits and a cgroup around forks of a Python that has the stack imported. */
export function createBubblewrapDriver({ runDirectory, bwrapPath = "bwrap" }: BubblewrapOptions): SandboxDriver {
  const user = process.getuid?.() === 0 ? zygoteUser : null;
  const cgroupDirectories = toHostCgroupDirectories(runDirectory.cgroups);
  /** bwrap binds those directories, so none may be removed as empty and made again under a zygote. */
  const keeper = `bw-keep-${randomBytes(4).toString("hex")}`;
  let watcher: MemoryWatcher | null = null;
  const zygotes = new Map<string, Promise<Zygote>>();
  const stopping = new AbortController();

  /** One zygote per snapshot; a dead one, or one that could not be started, is replaced by the next caller. */
  async function getZygote(snapshot: Snapshot): Promise<Zygote> {
    const known = zygotes.get(snapshot.id);
    const zygote = await known?.catch(() => undefined);
    if (zygote?.isAlive) return zygote;
    stopping.signal.throwIfAborted();
    if (zygotes.get(snapshot.id) === known) zygotes.set(snapshot.id, startZygote(snapshot));
    return await zygotes.get(snapshot.id)!;
  }

  /** Not bound to the caller who came first: others wait for it too. */
  async function startZygote(snapshot: Snapshot): Promise<Zygote> {
    for (const directory of cgroupDirectories) await mkdir(join(directory, keeper), { recursive: true, mode: 0o755 });
    const directory = join(runDirectory.path, `z${randomBytes(4).toString("hex")}`);
    const zygote = await openZygote({ bwrapPath, snapshot, directory, cgroupDirectories, user, signal: stopping.signal });
    await runDirectory.recordProcess(zygote.pid);
    return zygote;
  }

  async function open({ snapshot, limits, signal }: OpenOptions): Promise<Lease> {
    signal?.throwIfAborted();
    const id = `bw-${randomBytes(8).toString("hex")}`;
    const zygote = await orAbort(getZygote(snapshot), signal);
    const meter = await createMeter({ id, limits, zygote });
    return await openLease({ id, zygote, meter, limits, signal });
  }

  async function createMeter({ id, limits, zygote }: { id: string; limits: SandboxLimits; zygote: Zygote }): Promise<Meter> {
    const { cgroups } = runDirectory;
    if (!cgroups.available) return (watcher ??= createMemoryWatcher()).watch({ limits, zygote });
    const cgroup = await createLeaseCgroup({
      cgroups,
      name: id,
      memoryBytes: limits.memoryBytes,
      processes: limits.processes,
      owner: user?.uid,
    });
    const files = cgroups.version === 1 ? await offerTasks(cgroup, user?.uid) : cgroup.joinPaths;
    return { ...cgroup, join: files.map((path) => toZygotePath(cgroupDirectories, path)), countsProcesses: true, begin: async () => {} };
  }

  async function close(): Promise<void> {
    stopping.abort(driverClosed());
    await Promise.all([...zygotes.values()].map(async (starting) => (await starting.catch(() => null))?.[Symbol.asyncDispose]()));
    for (const directory of cgroupDirectories) await rmdir(join(directory, keeper)).catch(() => {}); // no zygote was started, or the reaper was faster
    watcher?.stop();
  }

  return {
    name: "bubblewrap",
    rollback: "fork",
    preflight: () => preflightBubblewrap({ bwrapPath, user, cgroups: runDirectory.cgroups }),
    open,
    async prepare({ snapshot, signal }) {
      await orAbort(getZygote(snapshot), signal);
    },
    [Symbol.asyncDispose]: close,
  };
}

/**
 * A process that has one thread may move itself through `tasks`, where the kernel spares it the lock that cgroup.procs takes against every fork on the machine: 5 ms and more,
 * in each of three hierarchies. Version 2 has no such file, and one hierarchy.
 */
async function offerTasks({ paths }: LeaseCgroup, owner: number | undefined): Promise<string[]> {
  const files = paths.map((path) => join(path, "tasks"));
  if (owner !== undefined) for (const file of files) await chown(file, owner, -1);
  return files;
}

function driverClosed(): NoSandboxError {
  return new NoSandboxError({ code: "DRIVER_CLOSED", message: "The bubblewrap driver was closed." });
}
