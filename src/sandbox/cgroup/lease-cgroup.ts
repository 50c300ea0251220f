import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { NoSandboxError } from "../../errors/sluice-error.ts";
import { killAll } from "../../processes.ts";
import type { Usage } from "../contract.ts";
import {
  type Cgroups,
  hostCgroupName,
  listCgroupProcesses,
  removeCgroup,
  tryWriteControl,
  type Version1Parents,
  writeControl,
} from "./host-cgroups.ts";

/**
 * Combined CPU weight of all sandboxes, relative to the host (1). With equal weights, busy sandboxes would delay the server's answers
 * by a third of a second.
 */
const SANDBOXES_CPU_WEIGHT = 0.25;

export interface LeaseCgroupOptions {
  readonly cgroups: Cgroups & { readonly available: true };
  /** Unique among the sandboxes of this host process. */
  readonly name: string;
  readonly memoryBytes: number;
  /** Includes threads. */
  readonly processes: number;
  /** The uid of an unprivileged process that must be able to join the cgroup. */
  readonly owner?: number;
  /** When memory runs out, the kernel kills all processes instead of one. Needs version 2. */
  readonly killTogether?: boolean;
}

export async function createLeaseCgroup(options: LeaseCgroupOptions): Promise<LeaseCgroup> {
  const { cgroups, name } = options;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) throw new RangeError(`Invalid cgroup name: ${JSON.stringify(name)}`);
  try {
    return cgroups.version === 1
      ? await createVersion1({ ...options, parents: cgroups.parents })
      : await createVersion2({ ...options, parent: cgroups.parent });
  } catch (error) {
    throw new NoSandboxError({
      code: "CGROUP_FAILED",
      message: `The cgroup of a sandbox could not be created: ${(error as Error).message}`,
      hint: "Check that the cgroup tree under /sys/fs/cgroup is writable for this user.",
      cause: error,
    });
  }
}

/** Limits and measures one sandbox. */
export interface LeaseCgroup {
  /** The directories, one per hierarchy. */
  readonly paths: readonly string[];
  /** A process joins by writing "0" into each of these files. Its later children are members too. */
  readonly joinPaths: readonly string[];
  usage(): Promise<Usage>;
  resetPeak(): Promise<void>;
  /** Sends SIGKILL to all members and resolves when none is left. Nothing can be started in it afterwards. */
  kill(): Promise<void>;
  /** Idempotent. Kills remaining members first. */
  remove(): Promise<void>;
}

type Limits = Omit<LeaseCgroupOptions, "cgroups">;

async function createVersion1(options: Limits & { parents: Version1Parents }): Promise<LeaseCgroup> {
  const { parents, name, memoryBytes, processes, owner } = options;
  const place = join(hostCgroupName(), name);
  const memory = join(parents.memory, place);
  const pids = join(parents.pids, place);
  const cpuacct = join(parents.cpuacct, place);
  const cpu = parents.cpu === undefined ? [] : [join(parents.cpu, place)];
  const paths = [...new Set([memory, pids, cpuacct, ...cpu])]; // controllers may be mounted together
  try {
    for (const path of paths) await mkdir(path, { recursive: true, mode: 0o755 });
    if (parents.cpu !== undefined)
      await writeControl(join(parents.cpu, hostCgroupName()), "cpu.shares", String(SANDBOXES_CPU_WEIGHT * 1024));
    // Order matters: the kernel rejects a limit for memory plus swap that is below the limit for memory.
    await writeControl(memory, "memory.limit_in_bytes", String(memoryBytes));
    await tryWriteControl(memory, "memory.memsw.limit_in_bytes", String(memoryBytes));
    await tryWriteControl(memory, "memory.swappiness", "0");
    await writeControl(pids, "pids.max", String(processes));
    if (owner !== undefined) for (const path of paths) await chown(join(path, "cgroup.procs"), owner, -1);
  } catch (error) {
    for (const path of paths) await removeCgroup(path, 0);
    throw error;
  }
  const processor = createMeterFile(cpuacct, "cpuacct.usage");
  return toLeaseCgroup({
    paths,
    pids,
    peak: toPeakMeter(createMeterFile(memory, "memory.max_usage_in_bytes", { writable: true })),
    processor,
    readCpuMs: () => (processor.readNumber() ?? 0) / 1e6,
    events: createMeterFile(memory, "memory.oom_control"),
  });
}

export async function createVersion2(options: Limits & { parent: string }): Promise<LeaseCgroup> {
  const { parent, name, memoryBytes, processes, owner, killTogether } = options;
  const host = join(parent, hostCgroupName());
  const directory = join(host, name);
  try {
    await mkdir(host, { recursive: true, mode: 0o755 });
    await tryWriteControl(host, "cgroup.subtree_control", "+cpu");
    await writeControl(host, "cgroup.subtree_control", "+memory +pids");
    await tryWriteControl(host, "cpu.weight", String(SANDBOXES_CPU_WEIGHT * 100));
    await mkdir(directory, { mode: 0o755 });
    await writeControl(directory, "memory.max", String(memoryBytes));
    await tryWriteControl(directory, "memory.swap.max", "0");
    await writeControl(directory, "pids.max", String(processes));
    if (killTogether === true) await tryWriteControl(directory, "memory.oom.group", "1");
    // Joining also needs write access to cgroup.procs of the common ancestor of the old and the new cgroup: here the parent of the host's cgroup.
    if (owner !== undefined) for (const path of [directory, parent]) await chown(join(path, "cgroup.procs"), owner, -1);
  } catch (error) {
    await removeCgroup(directory, 0);
    throw error;
  }
  const processor = createMeterFile(directory, "cpu.stat");
  return toLeaseCgroup({
    paths: [directory],
    pids: directory,
    peak: openPeakMeter(directory),
    processor,
    readCpuMs: () => (parseField(processor.read(), "usage_usec") ?? 0) / 1000,
    events: createMeterFile(directory, "memory.events"),
  });
}

interface Parts {
  /** A process joins the first one first, so the first one contains all members. */
  readonly paths: readonly string[];
  readonly pids: string;
  readonly peak: PeakMeter;
  readonly processor: MeterFile;
  readonly readCpuMs: () => number;
  readonly events: MeterFile;
}

function toLeaseCgroup({ paths, pids, peak, processor, readCpuMs, events }: Parts): LeaseCgroup {
  async function kill(): Promise<void> {
    await tryWriteControl(pids, "pids.max", "0"); // no fork can add processes while we kill
    await tryWriteControl(paths[0]!, "cgroup.kill", "1"); // version 2 since Linux 5.14; otherwise killAll does it
    await killAll(() => listCgroupProcesses([paths[0]!]), 10_000);
  }
  return {
    paths,
    joinPaths: paths.map((path) => join(path, "cgroup.procs")),
    usage: async () => ({ peakMemoryBytes: peak.read(), cpuMs: readCpuMs(), memoryKills: parseField(events.read(), "oom_kill") ?? 0 }),
    resetPeak: async () => peak.reset(),
    kill,
    async remove() {
      await kill();
      for (const meter of [peak, processor, events]) meter.close();
      await Promise.all(paths.map((path) => removeCgroup(path, 2_000)));
    },
  };
}

interface PeakMeter {
  read(): number;
  reset(): void;
  close(): void;
}

/** Since Linux 6.12, a write to memory.peak resets it for the descriptor that wrote. On older kernels, memory.current is sampled instead. */
function openPeakMeter(directory: string): PeakMeter {
  const file = createMeterFile(directory, "memory.peak", { writable: true });
  return file.reset() ? toPeakMeter(file) : createSamplingMeter(directory, file);
}

function toPeakMeter(file: MeterFile): PeakMeter {
  return { read: () => file.readNumber() ?? 0, reset: () => void file.reset(), close: () => file.close() };
}

function createSamplingMeter(directory: string, sinceStart: MeterFile): PeakMeter {
  const current = createMeterFile(directory, "memory.current");
  let highest = 0;
  let wasReset = false;
  const sample = (): void => {
    highest = Math.max(highest, current.readNumber() ?? 0);
  };
  const timer = setInterval(sample, 50);
  timer.unref();
  return {
    read() {
      sample();
      return Math.max(highest, wasReset ? 0 : (sinceStart.readNumber() ?? 0));
    },
    reset() {
      wasReset = true;
      highest = 0;
      sample();
    },
    close() {
      clearInterval(timer);
      current.close();
      sinceStart.close();
    },
  };
}

/** A file that is read before and after every cell. It stays open and is read synchronously: that takes microseconds, the thread pool a millisecond. */
interface MeterFile {
  /** Null when the kernel has no such file or the cgroup was removed. */
  read(): string | null;
  readNumber(): number | null;
  /** Restarts the kernel's counter. False when the kernel does not support that. */
  reset(): boolean;
  close(): void;
}

/** The file is opened on first use. */
function createMeterFile(directory: string, file: string, { writable = false }: { writable?: boolean } = {}): MeterFile {
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

/** Parses one field from lines of `name value`. */
function parseField(text: string | null, field: string): number | null {
  const line = text?.split("\n").find((entry) => entry.startsWith(`${field} `));
  return line === undefined ? null : Number(line.slice(field.length + 1));
}
