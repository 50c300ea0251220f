import { readFileSync } from "node:fs";
import { access, constants, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { currentProcess, fromProcessKey, killAll, type ProcessIdentity, toProcessKey } from "../../processes.ts";

/** Where on this machine we can create cgroups for sandboxes. `parent` and `parents` are existing directories. */
export type Cgroups =
  | { readonly available: true; readonly version: 1; readonly parents: Version1Parents }
  | { readonly available: true; readonly version: 2; readonly parent: string }
  | { readonly available: false; readonly reason: string };

/** Without `cpu`, each sandbox gets the same CPU weight as the host. The same holds in version 2 if the controller is not available. */
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
  /** The part of the hierarchy that is mounted at `path`. */
  readonly root: string;
}

/**
 * Returns the top of the cgroup tree, unless this process has a memory limit itself (in a container, or a service with MemoryMax). Then it returns
 * the cgroup that has the limit, so that the limit also covers the sandboxes.
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

/** For the CPU controllers, our own cgroup: a CPU quota of ours then also covers the sandboxes. */
function toParent(mount: Mount, controller: string, own: string | undefined): string {
  if (controller === "memory") return findLimited(mount, own, "memory.limit_in_bytes");
  return controller === "pids" ? mount.path : ownDirectory(mount, own);
}

async function findVersion2(mount: Mount, own: string | undefined): Promise<Cgroups> {
  const parent = findLimited(mount, own, "memory.max");
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
        reason: `The cgroup ${parent} contains processes, so it cannot enable the controller "${controller}" for cgroups below it.`,
      };
    }
  }
  if (!enabled.includes("cpu")) await tryWriteControl(parent, "cgroup.subtree_control", "+cpu");
  return { available: true, version: 2, parent };
}

/** The nearest cgroup at or above our own that has a limit. The mount point if none has one. */
function findLimited(mount: Mount, own: string | undefined, limitFile: string): string {
  for (let directory = ownDirectory(mount, own); directory.startsWith(mount.path); directory = dirname(directory)) {
    const limit = readControl(directory, limitFile);
    if (limit !== null && limit !== "max" && Number(limit) < 2 ** 60) return directory;
    if (directory === mount.path) break;
  }
  return mount.path;
}

/** The directory of our own cgroup. The mount point when our cgroup is outside of the mounted part. */
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

/** The path of our own cgroup by controller. Version 2 has the empty name. */
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

/** Lists the host processes, alive or dead, that have cgroups on this machine. */
export async function listHostCgroups(cgroups: Cgroups): Promise<ProcessIdentity[]> {
  const children = (await Promise.all(toParents(cgroups).map((parent) => listChildren(parent)))).flat();
  const keys = new Set(children.map((child) => basename(child)).filter((name) => name.startsWith(hostCgroupPrefix)));
  return [...keys].map((name) => fromProcessKey(name.slice(hostCgroupPrefix.length))).filter((identity) => identity !== null);
}

/** Kills all processes in the cgroups of one host process and removes these cgroups. */
export async function removeHostCgroups(cgroups: Cgroups, host: ProcessIdentity): Promise<void> {
  const directories = toHostCgroupDirectories(cgroups, host);
  await killAll(() => listCgroupProcesses(directories), 3_000);
  await Promise.all(directories.map((directory) => removeCgroup(directory, 2_000)));
}

/** Removes the host's own cgroup directories if no sandbox is left in them. */
export async function removeEmptyHostCgroups(cgroups: Cgroups, host: ProcessIdentity): Promise<void> {
  for (const directory of toHostCgroupDirectories(cgroups, host)) await rmdir(directory).catch(() => {});
}

/** The directories that contain all cgroups of one host process, one per hierarchy. */
export function toHostCgroupDirectories(cgroups: Cgroups, host: ProcessIdentity = currentProcess()): string[] {
  return toParents(cgroups).map((parent) => join(parent, hostCgroupName(host)));
}

function toParents(cgroups: Cgroups): string[] {
  if (!cgroups.available) return [];
  return [...new Set(cgroups.version === 1 ? Object.values(cgroups.parents) : [cgroups.parent])];
}

/** The name of the directory that contains all cgroups of one host process. The cgroups of a dead host are found by it. */
export function hostCgroupName(host: ProcessIdentity = currentProcess()): string {
  return `${hostCgroupPrefix}${toProcessKey(host)}`;
}

const hostCgroupPrefix = "sluice-";

/** Reads a file of a cgroup. Null when it does not exist. */
export function readControl(directory: string, file: string): string | null {
  try {
    return readFileSync(join(directory, file), "latin1").trim();
  } catch {
    return null;
  }
}

export async function writeControl(directory: string, file: string, value: string): Promise<void> {
  await writeFile(join(directory, file), value);
}

/** For settings that a kernel may lack. True when the write succeeded. */
export async function tryWriteControl(directory: string, file: string, value: string): Promise<boolean> {
  return writeControl(directory, file, value).then(
    () => true,
    () => false,
  );
}

/** Lists the processes in these cgroups and in the cgroups below them. */
export async function listCgroupProcesses(directories: readonly string[]): Promise<number[]> {
  const pids = new Set<number>();
  for (const directory of directories) {
    for (const pid of (readControl(directory, "cgroup.procs") ?? "").split("\n").map(Number)) pids.add(pid);
    for (const pid of await listCgroupProcesses(await listChildren(directory))) pids.add(pid);
  }
  return [...pids].filter((pid) => pid > 0); // 0 stands for a process outside our pid namespace
}

async function listChildren(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name));
}

/** Removes a cgroup and those below it. Retries until `timeoutMs`, because the kernel answers EBUSY for a moment after the last process has exited. */
export async function removeCgroup(directory: string, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 50)) {
    for (const child of await listChildren(directory)) await removeCgroup(child, Math.max(0, deadline - performance.now()));
    try {
      return await rmdir(directory);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT" || performance.now() > deadline) return;
    }
    await sleep(waitMs);
  }
}
