import { readFile, readdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** The files of the kernel's control group tree, as the rest of this folder reads and writes them. Missing file: null. */
export async function readControl(directory: string, file: string): Promise<string | null> {
  try {
    return (await readFile(join(directory, file), "latin1")).trim();
  } catch {
    return null;
  }
}

export async function readNumber(directory: string, file: string): Promise<number | null> {
  const text = await readControl(directory, file);
  return text === null || !/^\d+$/.test(text) ? null : Number(text);
}

/** One field of a file of `name value` lines. */
export async function readField(directory: string, file: string, field: string): Promise<number | null> {
  const text = await readControl(directory, file);
  const line = text?.split("\n").find((entry) => entry.startsWith(`${field} `));
  return line === undefined ? null : Number(line.slice(field.length + 1));
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
  const own = (await readControl(directory, "cgroup.procs")) ?? "";
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
