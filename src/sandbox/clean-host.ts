import { execFile } from "node:child_process";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { findCgroups, removeHostCgroups } from "./cgroup/host-cgroups.ts";
import { findProcessesByArgument, killAll, listProcessTree, type ProcessIdentity, readStartTime } from "../processes.ts";

/** Subdirectories of a host's run directory. */
export const processRecords = "processes";
export const pathRecords = "paths";
export const runscState = "runsc";

/**
 * Kills and removes everything that a dead host process left: processes, cgroups, mounts, directories. Called by the host's reaper, and by the next
 * host at its start, for the case that the reaper died too (a power cut). Never throws: the next host retries what could not be removed.
 */
export async function cleanHost({ directory, host }: { directory: string; host: ProcessIdentity }): Promise<void> {
  await quietly(async () => removeHostCgroups(await findCgroups(), host));
  await quietly(() => killRecorded(directory));
  await quietly(() => killAll(() => findProcessesByArgument(`--root=${join(directory, runscState)}`), 3_000));
  await quietly(() => unmountAllBelow(directory));
  await quietly(() => removeRecordedPaths(directory));
  await rm(directory, { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
}

async function killRecorded(directory: string): Promise<void> {
  const names = await readdir(join(directory, processRecords)).catch(() => []);
  const roots = names
    .map((name) => /^(\d+)-(\d+)$/.exec(name))
    .filter((match) => match !== null && readStartTime(Number(match[1])) === match[2]);
  let tree = await listProcessTree(roots.map((match) => Number(match![1])));
  // Each round lists children before it kills, because a child whose parent is dead gets another parent.
  await killAll(async () => {
    tree = [...new Set([...tree, ...(await listProcessTree(tree))])].filter((pid) => readStartTime(pid) !== null);
    return tree;
  }, 3_000);
}

async function unmountAllBelow(directory: string): Promise<void> {
  const text = await readFile("/proc/self/mountinfo", "utf8");
  const points = text
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .map(unescapeMount)
    .filter((path) => path.startsWith(`${directory}/`));
  for (const point of points.toReversed()) await promisify(execFile)("umount", ["-l", point]).catch(() => {});
}

/** In mountinfo, spaces, tabs, newlines and backslashes are octal escapes. */
function unescapeMount(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}

async function removeRecordedPaths(directory: string): Promise<void> {
  for (const name of await readdir(join(directory, pathRecords)).catch(() => [])) {
    const path = await readFile(join(directory, pathRecords, name), "utf8");
    if (path.startsWith("/")) await rm(path, { recursive: true, force: true });
  }
}

async function quietly(step: () => Promise<unknown>): Promise<void> {
  await step().catch(() => {});
}
