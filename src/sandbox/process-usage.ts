import { readFile } from "node:fs/promises";
import { readProcess } from "../processes/process-identity.ts";
import type { Usage } from "./contract.ts";

/**
 * Measures and limits the memory of a sandbox where there is no cgroup, by looking at it from outside. Coarser than a cgroup: what is allocated
 * and freed between two looks is not seen, and a sandbox that allocates very fast can be over its limit for one interval.
 */
export interface ProcessMeter {
  usage(): Promise<Usage>;
  resetPeak(): Promise<void>;
  stop(): void;
}

export interface ProcessMeterOptions {
  /** Bytes in use now. Called at every look, so it has to be cheap. */
  readonly measureMemory: () => Promise<number>;
  /** The processes of the sandbox, now; for processor time. */
  readonly listProcesses: () => Promise<readonly number[]>;
  readonly memoryBytes: number;
  readonly intervalMs?: number;
  /** Called once, when the sandbox is over its limit. It has to end it. */
  readonly onOverLimit: (seenBytes: number) => void;
}

/** Processor time is looked at more rarely than memory: only what a process used after the last look is lost when it ends. */
const LOOKS_PER_CPU_LOOK = 10;

export function startProcessMeter({
  measureMemory,
  listProcesses,
  memoryBytes,
  intervalMs = 25,
  onOverLimit,
}: ProcessMeterOptions): ProcessMeter {
  const cpuByPid = new Map<number, number>();
  let peakMemoryBytes = 0;
  let memoryKills = 0;
  let looks = 0;
  let looking: Promise<void> | null = null;

  async function look(): Promise<void> {
    const seen = await measureMemory();
    peakMemoryBytes = Math.max(peakMemoryBytes, seen);
    if (seen > memoryBytes && memoryKills === 0) {
      memoryKills = 1;
      onOverLimit(seen);
    }
    if (looks++ % LOOKS_PER_CPU_LOOK === 0) await lookAtCpu();
  }

  async function lookAtCpu(): Promise<void> {
    for (const pid of await listProcesses()) {
      const found = await readProcess(pid);
      if (found !== null) cpuByPid.set(pid, found.cpuMs);
    }
  }

  /** One look at a time; a slow one is shared, not piled up. */
  function lookOnce(): Promise<void> {
    looking ??= look()
      .catch(() => {})
      .finally(() => {
        looking = null;
      });
    return looking;
  }

  const timer = setInterval(() => void lookOnce(), intervalMs);
  timer.unref();

  return {
    async usage() {
      await lookOnce();
      await lookAtCpu();
      return { peakMemoryBytes, cpuMs: [...cpuByPid.values()].reduce((sum, ms) => sum + ms, 0), memoryKills };
    },
    async resetPeak() {
      await looking;
      peakMemoryBytes = 0;
      await lookOnce();
    },
    stop() {
      clearInterval(timer);
    },
  };
}

/** Memory that only this process has. 0 for one that is gone. */
export async function readPrivateBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "latin1").catch(() => "");
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
}
