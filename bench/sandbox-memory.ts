import { readFile, readdir, readlink, stat } from "node:fs/promises";
import { listProcessTree } from "../src/processes.ts";

const MB = 1024 * 1024;

export interface SandboxMemory {
  /** Megabytes that are there for these sandboxes alone: Private_Clean and Private_Dirty of every process of theirs. */
  readonly privateMb: number;
  /** The same with a part of what is shared (Pss): what the zygote and other sandboxes map too counts for each in parts. */
  readonly proportionalMb: number;
}

/**
 * Memory that all sandboxes of this process take together, seen from the host. Not in it: page tables and other memory of the kernel, the zygote, which is
 * there once for all, and for bubblewrap files in scratch.
 *
 * bubblewrap: the zygote's descendants, that is monitor, head and spare of each sandbox.
 * gvisor: runsc, the gofer, the sentry and its stubs. The memory of the sandboxed processes is one memfd of the sentry, of which only parts are mapped at any time
 * and some by stubs that share one address space; smaps would miss pages and count others twice. So the memfd counts as what the kernel holds for it, once; files in scratch are part of it.
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
  const sum = (of: (one: (typeof found)[number]) => number): number => found.reduce((total, one) => total + of(one) + one.file, 0) / MB;
  return { privateMb: sum((one) => one.own), proportionalMb: sum((one) => one.proportional) };
}

/** The first of them is the zygote itself; bwrap, its parent, has the same words further back. */
function isZygote([program, ...words]: readonly string[]): boolean {
  return program === "/usr/bin/python3" && words.includes("sluice_worker.zygote");
}

/** Without the mappings of the sentry's memfd. */
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

/** One stub for each address space in the sandbox. What they started in turn are threads in all but name: they share its memory. */
async function listChildren(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`);
  const lists = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, "latin1").catch(() => "")));
  return lists.flatMap((list) => list.split(" ").filter(Boolean).map(Number));
}

async function readWords(pid: number): Promise<string[]> {
  return (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
}
