import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { readdir, rmdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { currentProcess, fromProcessKey, killAll, type ProcessIdentity, toProcessKey } from "../../processes.ts";
import type { Cgroups } from "./find-cgroups.ts";

/** Reads a file of a cgroup. Null when it does not exist. */
export function readControl(directory: string, file: string): string | null {
  try {
    return readFileSync(join(directory, file), "latin1").trim();
  } catch {
    return null;
  }
}

/** Parses one field from lines of `name value`. */
export function parseField(text: string | null, field: string): number | null {
  const line = text?.split("\n").find((entry) => entry.startsWith(`${field} `));
  return line === undefined ? null : Number(line.slice(field.length + 1));
}

/** A file that is read before and after every cell. It stays open and is read synchronously: that takes microseconds, the thread pool a millisecond. */
export interface MeterFile {
  /** Null when the kernel has no such file or the cgroup was removed. */
  read(): string | null;
  readNumber(): number | null;
  /** Restarts the kernel's counter. False when the kernel does not support that. */
  reset(): boolean;
  close(): void;
}

/** The file is opened on first use. */
export function createMeterFile(directory: string, file: string, { writable = false }: { writable?: boolean } = {}): MeterFile {
  const buffer = Buffer.alloc(4096);
  let descriptor: number | null = null;
  let closed = false;

  function use<T>(work: (descriptor: number) => T, fallback: T): T {
    if (closed) return fallback;
    try {
      return work((descriptor ??= openSync(join(directory, file), writable ? "r+" : "r")));
    } catch {
      return fallback;
    }
  }
  const read = (): string | null => use((from) => buffer.toString("latin1", 0, readSync(from, buffer, 0, buffer.length, 0)).trim(), null);
  return {
    read,
    readNumber() {
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

/** Processes in these cgroups and in the cgroups below them. */
export async function listProcesses(directories: readonly string[]): Promise<number[]> {
  const pids = new Set<number>();
  for (const directory of directories) {
    for (const pid of (readControl(directory, "cgroup.procs") ?? "").split("\n").map(Number)) pids.add(pid);
    for (const pid of await listProcesses(await listChildren(directory))) pids.add(pid);
  }
  return [...pids].filter((pid) => pid > 0); // 0 stands for a process outside our pid namespace
}

async function listChildren(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name));
}

/** Removes a cgroup and those below it. Retries until `timeoutMs`, because the kernel answers EBUSY for a moment after the last process has exited. */
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

/** The host processes, alive or dead, whose cgroups exist. */
export async function listHostCgroups(cgroups: Cgroups): Promise<ProcessIdentity[]> {
  const children = (await Promise.all(toParents(cgroups).map((parent) => listChildren(parent)))).flat();
  const keys = new Set(children.map((child) => basename(child)).filter((name) => name.startsWith(hostCgroupPrefix)));
  return [...keys].map((name) => fromProcessKey(name.slice(hostCgroupPrefix.length))).filter((identity) => identity !== null);
}

/** Kills all processes in the cgroups of one host process and removes these cgroups. */
export async function removeHostCgroups(cgroups: Cgroups, host: ProcessIdentity): Promise<void> {
  const directories = toHostCgroupDirectories(cgroups, host);
  await killAll(() => listProcesses(directories), 3_000);
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
