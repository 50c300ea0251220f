import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createLeaseCgroup, hostCgroupName } from "../../cgroup/lease-cgroup.ts";
import { findCgroups, type Cgroups } from "../../cgroup/find-cgroups.ts";
import type { OpenOptions, Preflight, SandboxDriver, SandboxLimits, Snapshot } from "../../contract.ts";
import { toZygotePath } from "./bwrap-arguments.ts";
import { checkBubblewrap } from "./check-bubblewrap.ts";
import { openLease, type Meter } from "./open-lease.ts";
import { openZygote, type Zygote } from "./open-zygote.ts";

export interface BubblewrapOptions {
  readonly runDirectory: string;
  /** "bwrap" on PATH unless given. */
  readonly bwrapPath?: string;
}

/** Who the zygote is when the host is root: nobody's uid, so that nothing on the host belongs to it. */
export const zygoteUser: { readonly uid: number; readonly gid: number } = Object.freeze({ uid: 65532, gid: 65532 });

/** Namespaces, seccomp, rlimits and a cgroup around forks of a Python that has the stack imported. */
export function createBubblewrapDriver({ runDirectory, bwrapPath = "bwrap" }: BubblewrapOptions): SandboxDriver {
  const user = process.getuid?.() === 0 ? zygoteUser : null;
  const zygotes = new Map<string, Promise<Zygote>>();
  let host: Promise<HostCgroups> | undefined;
  let closed = false;

  /** One zygote per snapshot; a dead one is replaced by the next caller. */
  async function getZygote(snapshot: Snapshot, signal?: AbortSignal): Promise<Zygote> {
    const existing = zygotes.get(snapshot.id);
    if (existing !== undefined && (await existing).isAlive) return await existing;
    if (zygotes.get(snapshot.id) === existing) {
      const starting = startZygote(snapshot, signal);
      zygotes.set(snapshot.id, starting);
      starting.catch(() => zygotes.get(snapshot.id) === starting && zygotes.delete(snapshot.id));
    }
    return await zygotes.get(snapshot.id)!;
  }

  async function startZygote(snapshot: Snapshot, signal?: AbortSignal): Promise<Zygote> {
    host ??= prepareHostCgroups();
    const { directories } = await host;
    const directory = join(runDirectory, `z${randomBytes(4).toString("hex")}`);
    return openZygote({ bwrapPath, snapshot, directory, cgroupDirectories: directories, user, signal });
  }

  async function open({ snapshot, limits, signal }: OpenOptions) {
    signal?.throwIfAborted();
    const id = `bw-${randomBytes(8).toString("hex")}`;
    const zygote = await getZygote(snapshot, signal);
    const meter = await createMeter({ host: await host!, id, limits, owner: user?.uid });
    return await openLease({ id, zygote, meter, limits, signal });
  }

  return {
    name: "bubblewrap",
    rollback: "fork",
    preflight: (): Promise<Preflight> => checkBubblewrap({ bwrapPath, user }),
    open,
    async prepare({ snapshot, signal }) {
      await getZygote(snapshot, signal);
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      const open = [...zygotes.values()];
      zygotes.clear();
      await Promise.all(open.map(async (zygote) => (await zygote.catch(() => null))?.[Symbol.asyncDispose]()));
    },
  };
}

interface HostCgroups {
  readonly cgroups: Cgroups;
  readonly directories: readonly string[];
}

/** The zygote's bwrap binds these directories, so they have to be there before it. */
async function prepareHostCgroups(): Promise<HostCgroups> {
  const cgroups = await findCgroups();
  if (!cgroups.available) return { cgroups, directories: [] };
  const parents = cgroups.version === 1 ? Object.values(cgroups.parents) : [cgroups.parent];
  const directories = [...new Set(parents)].map((parent) => join(parent, hostCgroupName()));
  for (const directory of directories) await mkdir(directory, { recursive: true, mode: 0o755 });
  return { cgroups, directories };
}

async function createMeter({ host, id, limits, owner }: { host: HostCgroups; id: string; limits: SandboxLimits; owner?: number }): Promise<Meter> {
  const { cgroups, directories } = host;
  if (!cgroups.available) throw new Error("to do: watcher");
  const cgroup = await createLeaseCgroup({ cgroups, name: id, memoryBytes: limits.memoryBytes, processes: limits.processes, owner });
  return {
    join: cgroup.joinPaths.map((path) => toZygotePath(directories, path)),
    countsProcesses: true,
    usage: cgroup.usage,
    resetPeak: cgroup.resetPeak,
    remove: cgroup.remove,
  };
}
