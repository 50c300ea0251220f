import { readFileSync, readlinkSync } from "node:fs";

/**
 * Names one process for good: pids are reused, a pid with its start time is not. The pid namespace is part of the name because a directory
 * or a cgroup tree can be shared between containers, where the same pid is another process.
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

/** `<pid>-<startTime>-<namespace>`: short, because unix socket paths under it are limited to 107 bytes. */
export function toProcessKey({ pid, startTime, namespace }: ProcessIdentity): string {
  return `${pid}-${startTime}-${namespace}`;
}

export function fromProcessKey(key: string): ProcessIdentity | null {
  const match = /^([1-9][0-9]{0,9})-([0-9]{1,20})-([0-9a-z]{1,12})$/.exec(key);
  return match === null ? null : { pid: Number(match[1]), startTime: match[2]!, namespace: match[3]! };
}

/** Null when it cannot be told: the process belongs to another pid namespace. Then nothing of it may be touched. */
export function isProcessAlive({ pid, startTime, namespace }: ProcessIdentity): boolean | null {
  if (namespace !== readNamespace()) return null;
  return readStartTime(pid) === startTime;
}

/** Null when there is no such process, or it is a zombie and can run no more. */
export function readStartTime(pid: number): string | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return null;
  }
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" "); // the command's own name may hold spaces and brackets
  return fields[0] === "Z" || fields[0] === "X" ? null : (fields[19] ?? null);
}

function readNamespace(): string {
  const inode = /\[(\d+)\]/.exec(readlinkSync("/proc/self/ns/pid"))?.[1] ?? "0";
  return Number(inode).toString(36);
}
