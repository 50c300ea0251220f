import { readFile } from "node:fs/promises";
import { readProcess } from "../../../processes.ts";
import type { Usage } from "../../contract.ts";

/**
 * Measures and limits the memory of a sandbox by polling, where there is no cgroup. Less exact than a cgroup: it does not see memory that is
 * allocated and freed between two samples, and a sandbox that allocates fast can be over its limit for one interval.
 */
export interface ProcessMeter {
  usage(): Promise<Usage>;
  resetPeak(): Promise<void>;
  stop(): void;
}

export interface ProcessMeterOptions {
  /** Bytes in use now. Called for every sample, so it must be cheap. */
  readonly measureMemory: () => Promise<number>;
  /** The processes of the sandbox; their CPU time is counted. */
  readonly listProcesses: () => Promise<readonly number[]>;
  readonly memoryBytes: number;
  readonly intervalMs?: number;
  /** Called once, when the sandbox is over its limit. Must kill the sandbox. */
  readonly onOverLimit: (usedBytes: number) => void;
}

/** CPU time is sampled less often than memory. When a process ends, only its time since the last sample is lost. */
const MEMORY_SAMPLES_PER_CPU_SAMPLE = 10;

export function startProcessMeter({
  measureMemory,
  listProcesses,
  memoryBytes,
  intervalMs = 25,
  onOverLimit,
}: ProcessMeterOptions): ProcessMeter {
  const cpuMsByPid = new Map<number, number>();
  let peakMemoryBytes = 0;
  let memoryKills = 0;
  let samples = 0;
  let sampling: Promise<void> | null = null;

  async function takeSample(): Promise<void> {
    const usedBytes = await measureMemory();
    peakMemoryBytes = Math.max(peakMemoryBytes, usedBytes);
    if (usedBytes > memoryBytes && memoryKills === 0) {
      memoryKills = 1;
      onOverLimit(usedBytes);
    }
    if (samples++ % MEMORY_SAMPLES_PER_CPU_SAMPLE === 0) await sampleCpu();
  }

  async function sampleCpu(): Promise<void> {
    for (const pid of await listProcesses()) {
      const found = await readProcess(pid);
      if (found !== null) cpuMsByPid.set(pid, found.cpuMs);
    }
  }

  /** Takes one sample at a time: callers share a slow one. */
  function sample(): Promise<void> {
    sampling ??= takeSample()
      .catch(() => {})
      .finally(() => {
        sampling = null;
      });
    return sampling;
  }

  const timer = setInterval(() => void sample(), intervalMs);
  timer.unref();

  return {
    async usage() {
      await sample();
      await sampleCpu();
      return { peakMemoryBytes, cpuMs: [...cpuMsByPid.values()].reduce((sum, ms) => sum + ms, 0), memoryKills };
    },
    async resetPeak() {
      await sampling;
      peakMemoryBytes = 0;
      await sample();
    },
    stop() {
      clearInterval(timer);
    },
  };
}

/** Anonymous memory of one process. 0 when it does not exist. */
export async function readPrivateBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "latin1").catch(() => "");
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
}
