import { readdir, readFile, statfs } from "node:fs/promises";
import type { SandboxLimits, Usage } from "../../contract.ts";
import { readProcess, readStartTime, type ProcessStat } from "../../../processes.ts";
import { scratchDirectory } from "../../worker-environment.ts";
import type { Meter } from "./open-bubblewrap-lease.ts";
import type { Fork, Zygote } from "./open-zygote.ts";

/**
 * Limits and measures sandboxes where there is no cgroup, by looking at /proc up to twenty times a second. Coarser than a cgroup: a sandbox can be over its limit for one
 * interval, and files in memory that no process maps (memfd) are not seen. Whoever is over loses its largest process, which is the running cell.
 */
export interface MemoryWatcher {
  watch(sandbox: { readonly limits: SandboxLimits; readonly zygote: Zygote }): Meter;
  stop(): void;
}

interface Watched {
  readonly limits: SandboxLimits;
  readonly fork: Fork;
  /** Process 1 of the sandbox, as this process sees it. */
  readonly init: number;
  /** What every process of the sandbox has in common with the zygote. Nobody's fault, so not counted. */
  readonly commonBytes: number;
  roughBytes: number;
  peakMemoryBytes: number;
  cpuMs: number;
  memoryKills: number;
}

type Scan = ReadonlyMap<number, readonly ProcessStat[]>;

const INTERVAL_MS = 50;
const WORTH_A_LOOK_BYTES = 1024 * 1024;
const FILES_AT_ONCE = 32;

export function createMemoryWatcher(): MemoryWatcher {
  const all = new Set<Watched>();
  let timer: NodeJS.Timeout | undefined;
  let scanning: Promise<Scan> | undefined;

  /** One pass over /proc for whoever asks while it runs. */
  function scan(): Promise<Scan> {
    scanning ??= scanProcesses().finally(() => {
      scanning = undefined;
    });
    return scanning;
  }

  /** The next look starts when this one is over, so that slow ones do not pile up. */
  function schedule(): void {
    if (timer !== undefined || all.size === 0) return;
    timer = setTimeout(() => void lookAtAll(), INTERVAL_MS);
    timer.unref();
  }

  async function lookAtAll(): Promise<void> {
    const seen = await scan();
    for (const watched of all) await look({ watched, scan: seen, always: false }).catch(() => {});
    timer = undefined;
    schedule();
  }

  function watch({ limits, zygote }: { limits: SandboxLimits; zygote: Zygote }): Meter {
    let watched: Watched | undefined;
    return {
      join: [],
      countsProcesses: false,
      async begin(fork) {
        const pidInZygote = await fork.pid;
        const init =
          (await findInit({ scan: await scan(), zygote, pidInZygote })) ??
          (await findInit({ scan: await scanProcesses(), zygote, pidInZygote }));
        if (init === null) throw new Error(`process ${pidInZygote} of the zygote was not found in /proc`);
        const commonBytes = await readCommonBytes(await scan(), zygote);
        watched = { limits, fork, init, commonBytes, roughBytes: 0, peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };
        all.add(watched);
        schedule();
      },
      async usage() {
        if (watched !== undefined && all.has(watched)) await look({ watched, scan: await scan(), always: true });
        return toUsage(watched);
      },
      async resetPeak() {
        if (watched === undefined) return;
        watched.peakMemoryBytes = 0;
        watched.roughBytes = 0;
      },
      async remove() {
        if (watched !== undefined) all.delete(watched);
      },
    };
  }

  return {
    watch,
    stop() {
      all.clear();
      clearTimeout(timer);
    },
  };
}

function toUsage(watched: Watched | undefined): Usage {
  const { peakMemoryBytes, cpuMs, memoryKills } = watched ?? { peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };
  return { peakMemoryBytes, cpuMs, memoryKills };
}

async function scanProcesses(): Promise<Scan> {
  const names = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const byParent = new Map<number, ProcessStat[]>();
  for (let start = 0; start < names.length; start += FILES_AT_ONCE) {
    for (const entry of await Promise.all(names.slice(start, start + FILES_AT_ONCE).map((name) => readProcess(Number(name))))) {
      if (entry === null) continue;
      const siblings = byParent.get(entry.parent);
      if (siblings === undefined) byParent.set(entry.parent, [entry]);
      else siblings.push(entry);
    }
  }
  return byParent;
}

/** The pid namespaces are nested, so /proc has every process under our own number; the last two of NSpid are the zygote's number for it, and 1. */
async function findInit({ scan, zygote, pidInZygote }: { scan: Scan; zygote: Zygote; pidInZygote: number }): Promise<number | null> {
  const inits = (scan.get(zygote.pid) ?? []).flatMap(({ pid }) => scan.get(pid) ?? []);
  for (const { pid } of inits.toReversed()) {
    const status = await readFile(`/proc/${pid}/status`, "latin1").catch(() => "");
    const numbers = /^NSpid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/).map(Number) ?? [];
    if (numbers.length >= 3 && numbers.at(-1) === 1 && numbers.at(-2) === pidInZygote) return pid;
  }
  return null;
}

/** What is private to a process is slow to read (the kernel walks every page); it is read only when resident memory moved. */
async function look({ watched, scan, always }: { watched: Watched; scan: Scan; always: boolean }): Promise<void> {
  const entries = listBelow(scan, watched.init);
  const rough = entries.reduce((sum, { residentBytes }) => sum + residentBytes, 0);
  watched.cpuMs = Math.max(
    watched.cpuMs,
    entries.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
  );
  if (!always && Math.abs(rough - watched.roughBytes) < WORTH_A_LOOK_BYTES) return;
  watched.roughBytes = rough;

  const maps: PageCounts[] = [];
  for (const { pid } of entries) maps.push(await readPageCounts(pid));
  const seen = sumMemory(maps, watched.commonBytes) + (await readScratchBytes(watched.init));
  watched.peakMemoryBytes = Math.max(watched.peakMemoryBytes, seen);
  if (seen > watched.limits.memoryBytes)
    killLargest({ watched, entries, sizes: maps.map(({ privateBytes, sharedBytes }) => privateBytes + sharedBytes) });
}

/** Pages that the forks of one sandbox share are counted once: the largest such set, less what they all have from the zygote. */
function sumMemory(maps: readonly PageCounts[], commonBytes: number): number {
  const privateBytes = maps.reduce((sum, map) => sum + map.privateBytes, 0);
  const sharedBytes = Math.max(0, ...maps.map((map) => map.sharedBytes));
  return privateBytes + Math.max(0, sharedBytes - commonBytes);
}

async function readCommonBytes(scan: Scan, zygote: Zygote): Promise<number> {
  const entry = scan.get(zygote.pid)?.[0];
  if (entry === undefined) return 0;
  const { privateBytes, sharedBytes } = await readPageCounts(entry.pid);
  return privateBytes + sharedBytes;
}

interface PageCounts {
  readonly privateBytes: number;
  readonly sharedBytes: number;
}

/** Pages that were written to. What was only read from the snapshot's files is the page cache's. */
async function readPageCounts(pid: number): Promise<PageCounts> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, "latin1").catch(() => "");
  const read = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
  return { privateBytes: read("Private_Dirty"), sharedBytes: read("Shared_Dirty") };
}

function killLargest({ watched, entries, sizes }: { watched: Watched; entries: readonly ProcessStat[]; sizes: readonly number[] }): void {
  watched.memoryKills += 1;
  watched.roughBytes = 0; // look again, whatever is left
  const cells = entries.map((entry, index) => ({ ...entry, bytes: sizes[index]! })).filter(({ pid }) => pid !== watched.init);
  const largest = cells.toSorted((a, b) => b.bytes - a.bytes)[0];
  if (largest === undefined) watched.fork.kill();
  else if (readStartTime(largest.pid) === largest.startTime) process.kill(largest.pid, "SIGKILL");
}

function listBelow(scan: Scan, init: number): ProcessStat[] {
  const found: ProcessStat[] = [];
  const root = [...scan.values()].flat().find(({ pid }) => pid === init);
  const queue = root === undefined ? [] : [root];
  for (let entry = queue.shift(); entry !== undefined; entry = queue.shift()) {
    found.push(entry);
    queue.push(...(scan.get(entry.pid) ?? []));
  }
  return found;
}

async function readScratchBytes(init: number): Promise<number> {
  const used = await statfs(`/proc/${init}/root${scratchDirectory}`).catch(() => null);
  return used === null ? 0 : (used.blocks - used.bfree) * used.bsize;
}
