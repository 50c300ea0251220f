import { readFile, readdir, readlink, stat } from "node:fs/promises";
import { listProcessTree } from "../src/processes.ts";

const MB = 1024 * 1024;

export interface SandboxMemory {
  /** Megabytes that only these sandboxes use: Private_Clean and Private_Dirty of all their processes. */
  readonly privateMb: number;
  /** The same plus a share of shared memory (Pss): pages that several processes map count partly for each. */
  readonly proportionalMb: number;
}

/**
 * Measures the memory of all sandboxes of this process from the host. Excludes page tables and other kernel memory, the zygote, which exists once, and for
 * bubblewrap the files in scratch.
 *
 * bubblewrap: the descendants of the zygote, which are the monitor, the head and the spare process of each sandbox.
 * gvisor: runsc, the gofer, the sentry and its stubs. The sandboxed memory is one memfd of the sentry. Only parts of it are mapped at any time, and stubs share
 * address spaces, so smaps would miss some pages and count others twice. The memfd is therefore counted once, by its allocated size, which includes files in scratch.
 */
export async function measureSandboxMemory(driver: "gvisor" | "bubblewrap"): Promise<SandboxMemory> {
  const members = new Set<number>();
  for (const pid of await listProcessTree([process.pid])) {
    const words = await readWords(pid);
    if (driver === "bubblewrap" && isZygote(words)) {
      for (const one of (await listProcessTree([pid])).slice(1)) members.add(one);
      break;
    }
    if (driver === "gvisor" && /runsc/.test(words[0] ?? "")) {
      members.add(pid);
      if (words[0] === "runsc-sandbox") for (const stub of await listChildren(pid)) members.add(stub);
    }
  }
  const found = await Promise.all(
    [...members].map(async (pid) => ({ ...(await readSmaps(pid)), file: driver === "gvisor" ? await readMemoryFile(pid) : 0 })),
  );
  const sum = (bytesOf: (one: (typeof found)[number]) => number): number =>
    found.reduce((total, one) => total + bytesOf(one) + one.file, 0) / MB;
  return { privateMb: sum((one) => one.own), proportionalMb: sum((one) => one.proportional) };
}

/** Finds the zygote by its arguments. Its parent bwrap has the same arguments further back. */
function isZygote([program, ...words]: readonly string[]): boolean {
  return program === "/usr/bin/python3" && words.includes("sluice_worker.zygote");
}

/** Sums up smaps without the mappings of the memfd of the sentry. */
async function readSmaps(pid: number): Promise<{ own: number; proportional: number }> {
  const text = await readFile(`/proc/${pid}/smaps`, "latin1").catch(() => "");
  let [own, proportional, counts] = [0, 0, true];
  for (const line of text.split("\n")) {
    if (/^[0-9a-f]+-[0-9a-f]+ /.test(line)) counts = !line.includes("/memfd:runsc-memory");
    else if (counts && line.startsWith("Pss:")) proportional += Number(line.split(/\s+/)[1]);
    else if (counts && /^Private_(Clean|Dirty):/.test(line)) own += Number(line.split(/\s+/)[1]);
  }
  return { own: own * 1024, proportional: proportional * 1024 };
}

async function readMemoryFile(pid: number): Promise<number> {
  const words = await readWords(pid);
  if (words[0] !== "runsc-sandbox") return 0;
  for (const name of await readdir(`/proc/${pid}/fd`)) {
    const file = `/proc/${pid}/fd/${name}`;
    if ((await readlink(file).catch(() => "")).startsWith("/memfd:runsc-memory")) return (await stat(file)).blocks * 512;
  }
  return 0;
}

/** Returns one stub per address space of the sandbox. The processes that a stub started share its memory, like threads. */
async function listChildren(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`);
  const lists = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, "latin1").catch(() => "")));
  return lists.flatMap((list) => list.split(" ").filter(Boolean).map(Number));
}

async function readWords(pid: number): Promise<string[]> {
  return (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
}
