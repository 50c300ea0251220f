import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { readdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

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

/** Processes of a cgroup and of the ones below it. */
async function listProcesses(directory: string): Promise<number[]> {
  const own = readControl(directory, "cgroup.procs") ?? "";
  const pids = own.split("\n").filter(Boolean).map(Number);
  for (const child of await listChildren(directory)) pids.push(...(await listProcesses(child)));
  return pids;
}

export async function listChildren(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name));
}

/** Ends every process in these directories. Resolves when none is left; after `timeoutMs` with what still is. */
export async function killProcesses(directories: readonly string[], timeoutMs: number): Promise<number[]> {
  const deadline = performance.now() + timeoutMs;
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 20)) {
    const pids = await listAll(directories);
    if (pids.length === 0) return [];
    for (const pid of pids) killQuietly(pid);
    if (performance.now() > deadline) return pids;
    await sleep(waitMs);
  }
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

async function listAll(directories: readonly string[]): Promise<number[]> {
  const lists = await Promise.all(directories.map((directory) => listProcesses(directory)));
  return [...new Set(lists.flat())].filter((pid) => pid > 0); // 0 stands for a process of a pid namespace that is not ours
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // gone already
  }
}
