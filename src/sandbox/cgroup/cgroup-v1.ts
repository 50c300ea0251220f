import { chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Usage } from "../contract.ts";
import { fieldOf, killProcesses, createMeterFile, removeCgroup, tryWriteControl, writeControl } from "./cgroup-files.ts";
import type { LeaseCgroup } from "./contract.ts";
import { hostCgroupName } from "./host-cgroup-name.ts";
import { PROCESSOR_SHARE } from "./processor-share.ts";
import type { Version1Parents } from "./find-cgroups.ts";

export interface Version1Options {
  readonly parents: Version1Parents;
  readonly name: string;
  readonly memoryBytes: number;
  readonly processes: number;
  readonly owner?: number;
}

export async function createVersion1({ parents, name, memoryBytes, processes, owner }: Version1Options): Promise<LeaseCgroup> {
  const place = join(hostCgroupName(), name);
  const memory = join(parents.memory, place);
  const pids = join(parents.pids, place);
  const cpuacct = join(parents.cpuacct, place);
  const cpu = parents.cpu === undefined ? [] : [join(parents.cpu, place)];
  const paths = [...new Set([memory, pids, cpuacct, ...cpu])]; // controllers may be mounted together
  try {
    for (const path of paths) await mkdir(path, { recursive: true, mode: 0o755 });
    if (parents.cpu !== undefined) await writeControl(join(parents.cpu, hostCgroupName()), "cpu.shares", String(PROCESSOR_SHARE * 1024));
    await limitMemory(memory, memoryBytes);
    await writeControl(pids, "pids.max", String(processes));
    if (owner !== undefined) for (const path of paths) await chown(join(path, "cgroup.procs"), owner, -1);
  } catch (error) {
    for (const path of paths) await removeCgroup(path, 0);
    throw error;
  }

  const peak = createMeterFile(memory, "memory.max_usage_in_bytes", { resets: true });
  const processor = createMeterFile(cpuacct, "cpuacct.usage");
  const events = createMeterFile(memory, "memory.oom_control");

  async function usage(): Promise<Usage> {
    return {
      peakMemoryBytes: peak.number() ?? 0,
      cpuMs: (processor.number() ?? 0) / 1e6,
      memoryKills: fieldOf(events.read(), "oom_kill") ?? 0,
    };
  }

  async function resetPeak(): Promise<void> {
    peak.reset();
  }

  async function kill(): Promise<void> {
    await tryWriteControl(pids, "pids.max", "0"); // no fork can outrun the list
    await killProcesses([memory], 10_000); // joined first: whoever is in another is in this one
  }

  async function remove(): Promise<void> {
    await kill();
    for (const file of [peak, processor, events]) file.close();
    await Promise.all(paths.map((path) => removeCgroup(path, 2_000)));
  }

  return { paths, joinPaths: paths.map((path) => join(path, "cgroup.procs")), usage, resetPeak, kill, remove };
}

/** Order matters: memory and swap together can never be set below memory alone. */
async function limitMemory(directory: string, memoryBytes: number): Promise<void> {
  await writeControl(directory, "memory.limit_in_bytes", String(memoryBytes));
  await tryWriteControl(directory, "memory.memsw.limit_in_bytes", String(memoryBytes));
  await tryWriteControl(directory, "memory.swappiness", "0");
}
