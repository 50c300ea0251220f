import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { readdir, rmdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { currentProcess, fromProcessKey, killAll, type ProcessIdentity, toProcessKey } from "../../processes.ts";
import type { Cgroups } from "./find-cgroups.ts";

/** The files of the kernel's control group tree, as the rest of this folder reads and writes them. Missing file: null. */
export function readControl(directory: string, file: string): string | null {
  try {
    return readFileSync(join(directory, file), "latin1").trim();
  } catch {
    return null;
  }
}

/** One field out of `name value` lines. */
export function fieldOf(text: string | null, field: string): number | null {
  const line = text?.split("\n").find((entry) => entry.startsWith(`${field} `));
  return line === undefined ? null : Number(line.slice(field.length + 1));
}

/** A file that is read around every cell: kept open and read at once, which takes the kernel some microseconds; the thread pool takes a millisecond. */
export interface MeterFile {
  /** Null when the kernel has no such file, and once the cgroup is gone. */
  read(): string | null;
  number(): number | null;
  /** Counts anew from now; false where the kernel cannot. */
  reset(): boolean;
  close(): void;
}

/** Opened when it is first used. */
export function createMeterFile(directory: string, file: string, { resets = false }: { resets?: boolean } = {}): MeterFile {
  const buffer = Buffer.alloc(4096);
  let descriptor: number | null = null;
  let closed = false;

  function use<T>(work: (descriptor: number) => T, otherwise: T): T {
    if (closed) return otherwise;
    return tryOr(() => work((descriptor ??= openSync(join(directory, file), resets ? "r+" : "r"))), otherwise);
  }
  const read = (): string | null => use((from) => buffer.toString("latin1", 0, readSync(from, buffer, 0, buffer.length, 0)).trim(), null);
  return {
    read,
    number() {
      const text = read();
      return text === null || !/^\d+$/.test(text) ? null : Number(text);
    },
    reset: () => use((to) => writeSync(to, "0", 0) > 0, false),
    close() {
      if (!closed && descriptor !== null) closeSync(descriptor);
      closed = true;
    },
  };
}

function tryOr<T>(work: () => T, otherwise: T): T {
  try {
    return work();
  } catch {
    return otherwise;
  }
}

export async function writeControl(directory: string, file: string, value: string): Promise<void> {
  await writeFile(join(directory, file), value);
}

/** For settings that a kernel may not have; true when it took. */
export async function tryWriteControl(directory: string, file: string, value: string): Promise<boolean> {
  return writeControl(directory, file, value).then(
    () => true,
    () => false,
  );
}

/** Processes of cgroups and of the ones below them. */
export async function listProcesses(directories: readonly string[]): Promise<number[]> {
  const pids = new Set<number>();
  for (const directory of directories) {
    for (const pid of (readControl(directory, "cgroup.procs") ?? "").split("\n").map(Number)) pids.add(pid);
    for (const pid of await listProcesses(await listChildren(directory))) pids.add(pid);
  }
  return [...pids].filter((pid) => pid > 0); // 0 stands for a process of a pid namespace that is not ours
}

async function listChildren(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name));
}

/** Removes a cgroup and the ones below it. The kernel says EBUSY for a moment after the last process is gone. */
export async function removeCgroup(directory: string, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 50)) {
    for (const child of await listChildren(directory)) await removeCgroup(child, Math.max(0, deadline - performance.now()));
    try {
      await rmdir(directory);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
      if (performance.now() > deadline) return false;
    }
    await sleep(waitMs);
  }
}

/** Host processes that have, or had, cgroups here. */
export async function listHostCgroups(cgroups: Cgroups): Promise<ProcessIdentity[]> {
  const children = (await Promise.all(toParents(cgroups).map((parent) => listChildren(parent)))).flat();
  const keys = new Set(children.map((child) => basename(child)).filter((name) => name.startsWith(hostCgroupPrefix)));
  return [...keys].map((name) => fromProcessKey(name.slice(hostCgroupPrefix.length))).filter((identity) => identity !== null);
}

/** Kills what runs in the cgroups of one host process and removes them. */
export async function removeHostCgroups(cgroups: Cgroups, host: ProcessIdentity): Promise<void> {
  const directories = toHostDirectories(cgroups, host);
  await killAll(() => listProcesses(directories), 3_000);
  await Promise.all(directories.map((directory) => removeCgroup(directory, 2_000)));
}

/** The host's own directory, once its last sandbox is gone. */
export async function removeEmptyHostCgroups(cgroups: Cgroups, host: ProcessIdentity): Promise<void> {
  for (const directory of toHostDirectories(cgroups, host)) await rmdir(directory).catch(() => {});
}

/** In each hierarchy the directory below which all cgroups of one host process are. */
export function toHostDirectories(cgroups: Cgroups, host: ProcessIdentity = currentProcess()): string[] {
  return toParents(cgroups).map((parent) => join(parent, hostCgroupName(host)));
}

function toParents(cgroups: Cgroups): string[] {
  if (!cgroups.available) return [];
  return [...new Set(cgroups.version === 1 ? Object.values(cgroups.parents) : [cgroups.parent])];
}

/** All cgroups of one host process are below one directory of this name, so that what a dead host left can be found. */
export function hostCgroupName(host: ProcessIdentity = currentProcess()): string {
  return `${hostCgroupPrefix}${toProcessKey(host)}`;
}

const hostCgroupPrefix = "sluice-";
