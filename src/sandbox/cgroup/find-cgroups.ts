import { access, constants, readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { readControl, tryWriteControl } from "./cgroup-files.ts";

/** Where this host lets us make cgroups for sandboxes. `parents` are existing directories in which ours are made. */
export type Cgroups =
  | {
      readonly available: true;
      readonly version: 1;
      readonly parents: Version1Parents;
    }
  | { readonly available: true; readonly version: 2; readonly parent: string }
  | { readonly available: false; readonly reason: string };

/** Without `cpu`, as in version 2 where the host cannot hand it out, each sandbox is the host's equal on the processor. */
export interface Version1Parents {
  readonly memory: string;
  readonly pids: string;
  readonly cpuacct: string;
  readonly cpu?: string;
}

interface Mount {
  readonly path: string;
  readonly type: string;
  readonly options: readonly string[];
  /** The part of the hierarchy that is mounted there. */
  readonly root: string;
}

/**
 * Sandboxes go to the top of the tree, unless the host process itself lives under a memory limit (a container, a service with MemoryMax):
 * then below the cgroup that has the limit, so that the sandboxes cannot use more than the whole service may.
 */
export async function findCgroups(): Promise<Cgroups> {
  try {
    const [mounts, own] = await Promise.all([readMounts(), readOwnPaths()]);
    const memory = mounts.find((mount) => mount.type === "cgroup" && mount.options.includes("memory"));
    if (memory !== undefined) return await findVersion1(mounts, own);
    const unified = mounts.find((mount) => mount.type === "cgroup2");
    if (unified !== undefined) return await findVersion2(unified, own.get(""));
    return { available: false, reason: "No cgroup file system is mounted here." };
  } catch (error) {
    return { available: false, reason: `The cgroups of this machine cannot be read: ${(error as Error).message}` };
  }
}

async function findVersion1(mounts: readonly Mount[], own: ReadonlyMap<string, string>): Promise<Cgroups> {
  const parents = new Map<string, string>();
  for (const controller of ["memory", "pids", "cpuacct", "cpu"]) {
    const mount = mounts.find(({ type, options }) => type === "cgroup" && options.includes(controller));
    const parent = mount === undefined ? null : toParent(mount, controller, own.get(controller));
    const problem = parent === null ? `The cgroup controller "${controller}" is not mounted here.` : await whyNotWritable(parent);
    if (problem === null) parents.set(controller, parent!);
    else if (controller !== "cpu") return { available: false, reason: problem };
  }
  return { available: true, version: 1, parents: Object.fromEntries(parents) as unknown as Version1Parents };
}

/** Those of the processor are below our own, so that a quota that we have holds for sandboxes too. */
function toParent(mount: Mount, controller: string, own: string | undefined): string {
  if (controller === "memory") return deepestLimited(mount, own, "memory.limit_in_bytes");
  return controller === "pids" ? mount.path : ownDirectory(mount, own);
}

async function findVersion2(mount: Mount, own: string | undefined): Promise<Cgroups> {
  const parent = deepestLimited(mount, own, "memory.max");
  const problem = await whyNotWritable(parent);
  if (problem !== null) return { available: false, reason: problem };
  const offered = readControl(parent, "cgroup.controllers")?.split(" ") ?? [];
  const missing = ["memory", "pids"].filter((controller) => !offered.includes(controller));
  if (missing.length > 0)
    return { available: false, reason: `The cgroup ${parent} does not offer the controllers ${missing.join(" and ")}.` };
  const enabled = readControl(parent, "cgroup.subtree_control")?.split(" ") ?? [];
  for (const controller of ["memory", "pids"]) {
    if (!enabled.includes(controller) && !(await tryWriteControl(parent, "cgroup.subtree_control", `+${controller}`))) {
      return {
        available: false,
        reason: `The cgroup ${parent} holds processes itself, so it cannot hand the controller "${controller}" to cgroups below it.`,
      };
    }
  }
  if (!enabled.includes("cpu")) await tryWriteControl(parent, "cgroup.subtree_control", "+cpu");
  return { available: true, version: 2, parent };
}

/** The mount point itself when no cgroup between it and our own has a limit. */
function deepestLimited(mount: Mount, own: string | undefined, limitFile: string): string {
  for (let directory = ownDirectory(mount, own); directory.startsWith(mount.path); directory = dirname(directory)) {
    const limit = readControl(directory, limitFile);
    if (limit !== null && limit !== "max" && Number(limit) < 2 ** 60) return directory;
    if (directory === mount.path) break;
  }
  return mount.path;
}

/** Our own cgroup, as it is mounted; the mount point when it is outside of what is mounted. */
function ownDirectory(mount: Mount, own = "/"): string {
  return own.startsWith(mount.root) ? resolve(mount.path, `./${own.slice(mount.root.length)}`) : mount.path;
}

async function readMounts(): Promise<Mount[]> {
  const text = await readFile("/proc/self/mountinfo", "utf8");
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => {
      const [before, after] = line.split(" - ") as [string, string];
      const [, , , root, path] = before.split(" ") as [string, string, string, string, string];
      const [type, , options] = after.split(" ") as [string, string, string];
      return { path, type, root, options: options?.split(",") ?? [] };
    });
}

/** Our own cgroup in each hierarchy, by controller; version 2 has the empty name. */
async function readOwnPaths(): Promise<Map<string, string>> {
  const text = await readFile("/proc/self/cgroup", "utf8");
  const paths = new Map<string, string>();
  for (const line of text.split("\n").filter(Boolean)) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) as unknown as [string, string, string];
    for (const controller of controllers.split(",")) paths.set(controller, path);
  }
  return paths;
}

async function whyNotWritable(directory: string): Promise<string | null> {
  try {
    await access(directory, constants.W_OK | constants.X_OK);
    return null;
  } catch {
    return process.getuid?.() === 0
      ? `${directory} is not writable, although this process is root (a container with a read-only cgroup tree).`
      : `This process is not root and may not write to ${directory}.`;
  }
}
