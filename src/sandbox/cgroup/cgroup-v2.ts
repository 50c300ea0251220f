import { chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Usage } from "../contract.ts";
import { fieldOf, killProcesses, createMeterFile, removeCgroup, tryWriteControl, writeControl, type MeterFile } from "./cgroup-files.ts";
import type { LeaseCgroup } from "./contract.ts";
import { hostCgroupName } from "./host-cgroup-name.ts";
import { PROCESSOR_SHARE } from "./processor-share.ts";

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
    await tryWriteControl(host, "cgroup.subtree_control", "+cpu");
    await writeControl(host, "cgroup.subtree_control", "+memory +pids");
    await tryWriteControl(host, "cpu.weight", String(PROCESSOR_SHARE * 100));
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
  const peak = openPeakMeter(directory);
  const processor = createMeterFile(directory, "cpu.stat");
  const events = createMeterFile(directory, "memory.events");

  async function usage(): Promise<Usage> {
    return {
      peakMemoryBytes: peak.read(),
      cpuMs: (fieldOf(processor.read(), "usage_usec") ?? 0) / 1000,
      memoryKills: fieldOf(events.read(), "oom_kill") ?? 0,
    };
  }

  async function kill(): Promise<void> {
    await tryWriteControl(directory, "pids.max", "0");
    await tryWriteControl(directory, "cgroup.kill", "1"); // Linux 5.14; before, the list is walked
    await killProcesses([directory], 10_000);
  }

  async function remove(): Promise<void> {
    await kill();
    for (const meter of [peak, processor, events]) meter.close();
    await removeCgroup(directory, 2_000);
  }

  return { paths: [directory], joinPaths: [joinPath], usage, resetPeak: async () => peak.reset(), kill, remove };
}

/** Moving in also needs write access to cgroup.procs of the nearest ancestor that both cgroups share: here the one above the host's. */
async function delegate({ parent, joinPath, owner }: { parent: string; joinPath: string; owner: number }): Promise<void> {
  await chown(joinPath, owner, -1);
  await chown(join(parent, "cgroup.procs"), owner, -1);
}

interface PeakMeter {
  read(): number;
  reset(): void;
  close(): void;
}

/** memory.peak forgets on a write since Linux 6.12, for the descriptor that wrote. Before, or without the file, memory.current is sampled. */
function openPeakMeter(directory: string): PeakMeter {
  const file = createMeterFile(directory, "memory.peak", { resets: true });
  if (file.reset()) return { read: () => file.number() ?? 0, reset: () => void file.reset(), close: () => file.close() };
  return createSamplingMeter(directory, file);
}

function createSamplingMeter(directory: string, whole: MeterFile): PeakMeter {
  const current = createMeterFile(directory, "memory.current");
  let highest = 0;
  let everReset = false;
  const sample = (): void => {
    highest = Math.max(highest, current.number() ?? 0);
  };
  const timer = setInterval(sample, 50);
  timer.unref();
  return {
    read() {
      sample();
      return Math.max(highest, everReset ? 0 : (whole.number() ?? 0));
    },
    reset() {
      everReset = true;
      highest = 0;
      sample();
    },
    close() {
      clearInterval(timer);
      current.close();
      whole.close();
    },
  };
}
