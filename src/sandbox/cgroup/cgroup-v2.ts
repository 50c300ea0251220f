import { chown, mkdir, open, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { Usage } from "../contract.ts";
import { killProcesses, readControl, readField, readNumber, removeCgroup, tryWriteControl, writeControl } from "./cgroup-files.ts";
import type { LeaseCgroup } from "./contract.ts";
import { hostCgroupName } from "./host-cgroup-name.ts";

export interface Version2Options {
  readonly parent: string;
  readonly name: string;
  readonly memoryBytes: number;
  readonly processes: number;
  readonly owner?: number;
  readonly dieTogether?: boolean;
}

export async function createVersion2({ parent, name, memoryBytes, processes, owner, dieTogether }: Version2Options): Promise<LeaseCgroup> {
  const host = join(parent, hostCgroupName());
  const directory = join(host, name);
  const joinPath = join(directory, "cgroup.procs");
  try {
    await mkdir(host, { recursive: true, mode: 0o755 });
    await writeControl(host, "cgroup.subtree_control", "+memory +pids");
    await mkdir(directory, { mode: 0o755 });
    await writeControl(directory, "memory.max", String(memoryBytes));
    await tryWriteControl(directory, "memory.swap.max", "0");
    await writeControl(directory, "pids.max", String(processes));
    if (dieTogether === true) await tryWriteControl(directory, "memory.oom.group", "1");
    if (owner !== undefined) await delegate({ parent, joinPath, owner });
  } catch (error) {
    await removeCgroup(directory, 0);
    throw error;
  }
  const peak = await openPeakMeter(directory);

  async function usage(): Promise<Usage> {
    const [peakMemoryBytes, cpuUs, kills] = await Promise.all([
      peak.read(),
      readField(directory, "cpu.stat", "usage_usec"),
      readField(directory, "memory.events", "oom_kill"),
    ]);
    return { peakMemoryBytes, cpuMs: (cpuUs ?? 0) / 1000, memoryKills: kills ?? 0 };
  }

  async function kill(): Promise<void> {
    await tryWriteControl(directory, "pids.max", "0");
    await tryWriteControl(directory, "cgroup.kill", "1"); // Linux 5.14; before, the list is walked
    await killProcesses([directory], 10_000);
  }

  async function remove(): Promise<void> {
    await peak.close();
    await kill();
    await removeCgroup(directory, 2_000);
  }

  return { paths: [directory], joinPaths: [joinPath], usage, resetPeak: () => peak.reset(), kill, remove };
}

/** Moving in also needs write access to cgroup.procs of the nearest ancestor that both cgroups share: here the one above the host's. */
async function delegate({ parent, joinPath, owner }: { parent: string; joinPath: string; owner: number }): Promise<void> {
  await chown(joinPath, owner, -1);
  await chown(join(parent, "cgroup.procs"), owner, -1);
}

interface PeakMeter {
  read(): Promise<number>;
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** memory.peak forgets on a write since Linux 6.12, for the descriptor that wrote. Before, or without the file, memory.current is sampled. */
async function openPeakMeter(directory: string): Promise<PeakMeter> {
  const handle = await open(join(directory, "memory.peak"), "r+").catch(() => null);
  if (handle !== null && (await resetHandle(handle))) return createHandleMeter(handle);
  await handle?.close();
  return createSamplingMeter(directory);
}

function createHandleMeter(handle: FileHandle): PeakMeter {
  let last = 0;
  let closed = false;
  return {
    async read() {
      if (closed) return last;
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(32), 0, 32, 0);
      last = Number(buffer.toString("latin1", 0, bytesRead).trim());
      return last;
    },
    async reset() {
      if (!closed) await resetHandle(handle);
    },
    async close() {
      if (closed) return;
      closed = true;
      await handle.close();
    },
  };
}

function createSamplingMeter(directory: string): PeakMeter {
  let highest = 0;
  let everReset = false;
  const sample = async (): Promise<void> => {
    highest = Math.max(highest, (await readNumber(directory, "memory.current")) ?? 0);
  };
  const timer = setInterval(() => void sample(), 50);
  timer.unref();
  return {
    async read() {
      await sample();
      const whole = everReset ? null : await readControl(directory, "memory.peak");
      return Math.max(highest, Number(whole ?? 0));
    },
    async reset() {
      everReset = true;
      highest = 0;
      await sample();
    },
    async close() {
      clearInterval(timer);
    },
  };
}

async function resetHandle(handle: FileHandle): Promise<boolean> {
  return handle.write("0", 0).then(
    () => true,
    () => false,
  );
}
