import { readFile } from "node:fs/promises";
import type { Usage } from "./contract.ts";

/**
 * Measures, and where there is no cgroup also limits, the memory of a set of processes by walking /proc. Coarser than a cgroup: what is allocated
 * and freed between two looks is not seen, and a process that allocates very fast can be over the limit for one interval.
 */
export interface ProcessMeter {
  usage(): Promise<Usage>;
  resetPeak(): Promise<void>;
  stop(): void;
}

export interface ProcessMeterOptions {
  /** The processes of the sandbox, now. */
  readonly list: () => Promise<readonly number[]>;
  readonly memoryBytes: number;
  readonly intervalMs?: number;
  /** Called once, when the sum is over the limit. It has to end the sandbox. */
  readonly onOverLimit: (seenBytes: number) => void;
}

export function startProcessMeter({ list, memoryBytes, intervalMs = 50, onOverLimit }: ProcessMeterOptions): ProcessMeter {
  const cpuByPid = new Map<number, number>();
  let peak = 0;
  let kills = 0;
  let looking: Promise<void> | null = null;

  async function look(): Promise<void> {
    let sum = 0;
    for (const pid of await list()) {
      sum += await readMemoryBytes(pid);
      const cpuMs = await readCpuMs(pid);
      if (cpuMs !== null) cpuByPid.set(pid, cpuMs);
    }
    peak = Math.max(peak, sum);
    if (sum > memoryBytes && kills === 0) {
      kills = 1;
      onOverLimit(sum);
    }
  }

  /** One look at a time; a slow one is shared, not piled up. */
  function lookOnce(): Promise<void> {
    looking ??= look().finally(() => {
      looking = null;
    });
    return looking;
  }

  const timer = setInterval(() => void lookOnce(), intervalMs);
  timer.unref();

  return {
    async usage() {
      await lookOnce();
      return { peakMemoryBytes: peak, cpuMs: [...cpuByPid.values()].reduce((sum, ms) => sum + ms, 0), memoryKills: kills };
    },
    async resetPeak() {
      await looking;
      peak = 0;
      await lookOnce();
    },
    stop() {
      clearInterval(timer);
    },
  };
}

/** Proportional: a page that n processes share counts for 1/n in each. 0 for a process that is gone. */
export async function readMemoryBytes(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, "latin1").catch(() => null);
  const kilobytes = text === null ? null : /^Pss:\s+(\d+) kB/m.exec(text)?.[1];
  if (kilobytes !== null && kilobytes !== undefined) return Number(kilobytes) * 1024;
  const status = await readFile(`/proc/${pid}/status`, "latin1").catch(() => ""); // a process of another user: resident memory is all that may be seen
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
}

/** User and system time of the process and of its children that were waited for. */
async function readCpuMs(pid: number): Promise<number | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => null);
  if (stat === null) return null;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return ticks * MS_PER_TICK;
}

const MS_PER_TICK = 10; // USER_HZ is 100 on every architecture we run on
