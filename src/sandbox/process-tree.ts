import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { readStartTime } from "./host-process.ts";

/** One process and everything it started that is still its descendant. Zombies are left out. */
export async function listProcessTree(roots: readonly number[]): Promise<number[]> {
  const children = new Map<number, number[]>();
  for (const { pid, parent } of await listProcesses()) children.set(parent, [...(children.get(parent) ?? []), pid]);
  const tree: number[] = [];
  const queue = roots.filter((pid) => readStartTime(pid) !== null);
  for (let pid = queue.shift(); pid !== undefined; pid = queue.shift()) {
    tree.push(pid);
    queue.push(...(children.get(pid) ?? []));
  }
  return tree;
}

/** Processes that have `argument` as one whole word of their command line. */
export async function findProcessesByArgument(argument: string): Promise<number[]> {
  const found: number[] = [];
  for (const { pid } of await listProcesses()) {
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (line.split("\0").includes(argument)) found.push(pid);
  }
  return found;
}

/** SIGKILL to whatever `list` finds, until it finds nothing. Resolves with what is left after `timeoutMs`. */
export async function killAll(list: () => Promise<number[]>, timeoutMs: number): Promise<number[]> {
  const deadline = performance.now() + timeoutMs;
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 20)) {
    const pids = (await list()).filter((pid) => readStartTime(pid) !== null);
    if (pids.length === 0) return [];
    for (const pid of pids) killQuietly(pid);
    if (performance.now() > deadline) return pids;
    await sleep(waitMs);
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // gone already
  }
}

async function listProcesses(): Promise<{ pid: number; parent: number }[]> {
  const names = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    names.map(async (name) => {
      const stat = await readFile(`/proc/${name}/stat`, "latin1").catch(() => null);
      if (stat === null) return null;
      const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return state === "Z" || state === "X" ? null : { pid: Number(name), parent: Number(parent) };
    }),
  );
  return found.filter((entry) => entry !== null);
}
