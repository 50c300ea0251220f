import { readFile, statfs } from "node:fs/promises";
import { findTree, readStartTime, scanProcesses, type ProcessScan, type ProcessStat } from "../../../processes.ts";
import type { SandboxLimits } from "../../contract.ts";
import { scratchDirectory } from "../../worker-environment.ts";
import type { Meter } from "./open-bubblewrap-lease.ts";
import type { Fork, Zygote } from "./open-zygote.ts";

const INTERVAL_MS = 50;

/**
 * Limits and measures sandboxes where there is no cgroup, by reading /proc up to twenty times a second. Less exact than a cgroup: a sandbox can be
 * over its limit for one interval, and files in memory that no process maps (memfd) are not counted. When a sandbox is over its limit, its largest
 * process is killed, which is the running cell.
 */
export class MemoryWatcher {
  readonly #watched = new Set<WatchedSandbox>();
  #timer: NodeJS.Timeout | undefined;
  #scanning: Promise<ProcessScan> | undefined;

  watch({ limits, zygote }: { readonly limits: SandboxLimits; readonly zygote: Zygote }): Meter {
    let watched: WatchedSandbox | undefined;
    return {
      joinPaths: [],
      countsProcesses: false,
      begin: async (fork) => {
        const pidInZygote = await fork.pid;
        // A shared scan may have started before the fork.
        const init =
          (await findInit({ scan: await this.#scan(), zygote, pidInZygote })) ??
          (await findInit({ scan: await scanProcesses(), zygote, pidInZygote }));
        if (init === null) throw new Error(`process ${pidInZygote} of the zygote was not found in /proc`);
        const zygoteBytes = await readZygoteBytes(await this.#scan(), zygote);
        watched = { limits, fork, init, zygoteBytes, residentBytes: 0, peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };
        this.#watched.add(watched);
        this.#schedule();
      },
      usage: async () => {
        if (watched === undefined) return { peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };
        if (this.#watched.has(watched)) await measure({ watched, scan: await this.#scan(), force: true });
        const { peakMemoryBytes, cpuMs, memoryKills } = watched;
        return { peakMemoryBytes, cpuMs, memoryKills };
      },
      async resetPeak() {
        if (watched === undefined) return;
        watched.peakMemoryBytes = 0;
        watched.residentBytes = 0;
      },
      remove: async () => {
        if (watched !== undefined) this.#watched.delete(watched);
      },
    };
  }

  stop(): void {
    this.#watched.clear();
    clearTimeout(this.#timer);
  }

  /** Concurrent callers share one pass over /proc. */
  #scan(): Promise<ProcessScan> {
    this.#scanning ??= scanProcesses().finally(() => {
      this.#scanning = undefined;
    });
    return this.#scanning;
  }

  /** The next measurement is scheduled only after the current one, so that slow ones do not pile up. */
  #schedule(): void {
    if (this.#timer !== undefined || this.#watched.size === 0) return;
    this.#timer = setTimeout(() => void this.#measureAll(), INTERVAL_MS);
    this.#timer.unref();
  }

  async #measureAll(): Promise<void> {
    const scan = await this.#scan();
    for (const watched of this.#watched) await measure({ watched, scan, force: false }).catch(() => {});
    this.#timer = undefined;
    this.#schedule();
  }
}

interface WatchedSandbox {
  readonly limits: SandboxLimits;
  readonly fork: Fork;
  /** The host's pid of process 1 of the sandbox. */
  readonly init: number;
  /** Memory that every process of the sandbox shares with the zygote. It is not counted. */
  readonly zygoteBytes: number;
  residentBytes: number;
  peakMemoryBytes: number;
  cpuMs: number;
  memoryKills: number;
}

/**
 * Finds the host's pid of a process that the zygote knows as `pidInZygote`. NSpid in /proc/PID/status lists the pid in every nested namespace:
 * for process 1 of a sandbox, it ends with the pid in the zygote's namespace and 1.
 */
async function findInit({ scan, zygote, pidInZygote }: { scan: ProcessScan; zygote: Zygote; pidInZygote: number }): Promise<number | null> {
  const inits = (scan.get(zygote.pid) ?? []).flatMap(({ pid }) => scan.get(pid) ?? []);
  for (const { pid } of inits.toReversed()) {
    const status = await readFile(`/proc/${pid}/status`, "latin1").catch(() => "");
    const numbers = /^NSpid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/).map(Number) ?? [];
    if (numbers.length >= 3 && numbers.at(-1) === 1 && numbers.at(-2) === pidInZygote) return pid;
  }
  return null;
}

async function readZygoteBytes(scan: ProcessScan, zygote: Zygote): Promise<number> {
  const entry = scan.get(zygote.pid)?.[0];
  if (entry === undefined) return 0;
  const { privateBytes, sharedBytes } = await readDirtyBytes(entry.pid);
  return privateBytes + sharedBytes;
}

/** A change of resident memory below this does not trigger a new measurement. */
const SIGNIFICANT_BYTES = 1024 * 1024;

/**
 * Updates the usage of one sandbox and kills its largest process if it is over its limit. Private memory is slow to read, because the kernel walks
 * every page, so it is read only if resident memory has changed, or if `force` is set.
 */
async function measure({ watched, scan, force }: { watched: WatchedSandbox; scan: ProcessScan; force: boolean }): Promise<void> {
  const entries = findTree(scan, [watched.init]);
  const residentBytes = entries.reduce((sum, entry) => sum + entry.residentBytes, 0);
  watched.cpuMs = Math.max(
    watched.cpuMs,
    entries.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
  );
  if (!force && Math.abs(residentBytes - watched.residentBytes) < SIGNIFICANT_BYTES) return;
  watched.residentBytes = residentBytes;

  const processes: (ProcessStat & DirtyBytes)[] = [];
  for (const entry of entries) processes.push({ ...entry, ...(await readDirtyBytes(entry.pid)) });
  const usedBytes = sumMemory(processes, watched.zygoteBytes) + (await readScratchBytes(watched.init));
  watched.peakMemoryBytes = Math.max(watched.peakMemoryBytes, usedBytes);
  if (usedBytes > watched.limits.memoryBytes) killLargest(watched, processes);
}

interface DirtyBytes {
  readonly privateBytes: number;
  readonly sharedBytes: number;
}

/** Memory that was written to. Clean pages belong to the page cache of the snapshot's files. */
async function readDirtyBytes(pid: number): Promise<DirtyBytes> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, "latin1").catch(() => "");
  const read = (name: string): number => Number(new RegExp(`^${RegExp.escape(name)}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
  return { privateBytes: read("Private_Dirty"), sharedBytes: read("Shared_Dirty") };
}

/** Counts pages that the forks of one sandbox share once: takes the largest shared set, without the zygote's part. */
function sumMemory(processes: readonly DirtyBytes[], zygoteBytes: number): number {
  const privateBytes = processes.reduce((sum, process) => sum + process.privateBytes, 0);
  const sharedBytes = Math.max(0, ...processes.map((process) => process.sharedBytes));
  return privateBytes + Math.max(0, sharedBytes - zygoteBytes);
}

async function readScratchBytes(init: number): Promise<number> {
  const used = await statfs(`/proc/${init}/root${scratchDirectory}`).catch(() => null);
  return used === null ? 0 : (used.blocks - used.bfree) * used.bsize;
}

function killLargest(watched: WatchedSandbox, processes: readonly (ProcessStat & DirtyBytes)[]): void {
  watched.memoryKills += 1;
  watched.residentBytes = 0; // measure again next time, even if little changes
  const cells = processes.filter(({ pid }) => pid !== watched.init);
  const [largest] = cells.toSorted((a, b) => b.privateBytes + b.sharedBytes - a.privateBytes - a.sharedBytes);
  if (largest === undefined) watched.fork.kill();
  else if (readStartTime(largest.pid) === largest.startTime) process.kill(largest.pid, "SIGKILL");
}
