import { readFileSync, readlinkSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Identifies one process permanently: pids are reused, but a pid together with its start time is unique. The pid namespace is included because
 * containers can share a directory or a cgroup tree, and the same pid means a different process in each of them.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, field 22 of /proc/PID/stat. */
  readonly startTime: string;
  /** Inode of the pid namespace, in base 36. */
  readonly namespace: string;
}

export function currentProcess(): ProcessIdentity {
  return { pid: process.pid, startTime: readStartTime(process.pid) ?? "0", namespace: readNamespace() };
}

/** `<pid>-<startTime>-<namespace>`. Short, because it is part of unix socket paths, which are limited to 107 bytes. */
export function toProcessKey({ pid, startTime, namespace }: ProcessIdentity): string {
  return `${pid}-${startTime}-${namespace}`;
}

/** Null when `key` is not a process key. */
export function fromProcessKey(key: string): ProcessIdentity | null {
  const match = /^([1-9][0-9]{0,9})-([0-9]{1,20})-([0-9a-z]{1,12})$/.exec(key);
  return match === null ? null : { pid: Number(match[1]), startTime: match[2]!, namespace: match[3]! };
}

/** Null means unknown, because the process belongs to another pid namespace. Its files must not be touched then. */
export function isProcessAlive({ pid, startTime, namespace }: ProcessIdentity): boolean | null {
  if (namespace !== readNamespace()) return null;
  return readStartTime(pid) === startTime;
}

/** Null when the process does not exist or is a zombie. */
export function readStartTime(pid: number): string | null {
  try {
    const { isZombie, startTime } = parseStat(pid, readFileSync(`/proc/${pid}/stat`, "latin1"));
    return isZombie ? null : startTime;
  } catch {
    return null;
  }
}

export interface ProcessStat {
  readonly pid: number;
  readonly parent: number;
  readonly isZombie: boolean;
  readonly startTime: string;
  readonly residentBytes: number;
  /** User and system time of the process and of its reaped children. */
  readonly cpuMs: number;
}

/** Null when the process does not exist. */
export async function readProcess(pid: number): Promise<ProcessStat | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => null);
  return stat === null ? null : parseStat(pid, stat);
}

function parseStat(pid: number, stat: string): ProcessStat {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" "); // the command name before ")" may contain spaces and brackets
  return {
    pid,
    parent: Number(fields[1]),
    isZombie: fields[0] === "Z" || fields[0] === "X",
    startTime: fields[19]!,
    residentBytes: Number(fields[21]) * PAGE_BYTES,
    cpuMs: fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) * MS_PER_TICK,
  };
}

const PAGE_BYTES = 4096;
const MS_PER_TICK = 10; // USER_HZ is 100 on every supported architecture

function readNamespace(): string {
  const inode = /\[(\d+)\]/.exec(readlinkSync("/proc/self/ns/pid"))?.[1] ?? "0";
  return Number(inode).toString(36);
}

/** Lists the given processes and all their descendants, without zombies. */
export async function listProcessTree(roots: readonly number[]): Promise<number[]> {
  return findTree(await scanProcesses(), roots).map(({ pid }) => pid);
}

/** All processes of the machine by parent, without zombies. */
export type ProcessScan = ReadonlyMap<number, readonly ProcessStat[]>;

export async function scanProcesses(): Promise<ProcessScan> {
  return Map.groupBy(await listProcesses(), ({ parent }) => parent);
}

/** Finds the given processes and all their descendants in a scan. */
export function findTree(scan: ProcessScan, roots: readonly number[]): ProcessStat[] {
  const tree = [...scan.values()].flat().filter(({ pid }) => roots.includes(pid));
  for (const { pid } of tree) tree.push(...(scan.get(pid) ?? [])); // the loop also visits the processes that it adds
  return tree;
}

/** Lists the processes that have exactly `argument` as one of their command-line arguments. */
export async function findProcessesByArgument(argument: string): Promise<number[]> {
  const found: number[] = [];
  for (const { pid } of await listProcesses()) {
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (line.split("\0").includes(argument)) found.push(pid);
  }
  return found;
}

/**
 * Sends SIGKILL to the processes that `list` returns, again and again until it returns none. `list` must leave out dead processes.
 * Resolves with the processes that are still alive after `timeoutMs`.
 */
export async function killAll(list: () => Promise<number[]>, timeoutMs: number): Promise<number[]> {
  const deadline = performance.now() + timeoutMs;
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 20)) {
    const pids = await list();
    if (pids.length === 0) return [];
    for (const pid of pids) killQuietly(pid);
    if (performance.now() > deadline) return pids;
    await sleep(waitMs);
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // already dead
  }
}

const FILES_AT_ONCE = 32; // so that other file operations do not have to wait for hundreds of reads

async function listProcesses(): Promise<ProcessStat[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found: ProcessStat[] = [];
  for (let start = 0; start < pids.length; start += FILES_AT_ONCE) {
    const batch = await Promise.all(pids.slice(start, start + FILES_AT_ONCE).map(readProcess));
    found.push(...batch.flatMap((entry) => (entry === null || entry.isZombie ? [] : [entry])));
  }
  return found;
}

const KEPT_CHARACTERS = 8 * 1024;

/** Reads a stream to its end and keeps the last 8 KB. The returned function returns them. */
export function keepTail(stream: Readable): () => string {
  let tail = "";
  stream.setEncoding("utf8");
  stream.on("error", () => {});
  stream.on("data", (text: string) => {
    tail = (tail + text).slice(-KEPT_CHARACTERS);
  });
  return () => tail.trim();
}

/** Null when no signal has this number. Of two names for one number, returns the common one (SIGABRT, not SIGIOT). */
export function signalName(number: number): string | null {
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? null;
}
