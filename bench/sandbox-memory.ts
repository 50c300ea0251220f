import { readFile, readdir, readlink, stat } from "node:fs/promises";
import { listProcessTree } from "../src/sandbox/process-tree.ts";

const MB = 1024 * 1024;

/**
 * Megabytes that all sandboxes of this process take together, seen from the host. Counted is the proportional set size (Pss in smaps) of every process of every
 * sandbox: a page that several of them map counts for each in parts, so what a fork has not written costs it next to nothing, as on the machine itself.
 * Not in it: page tables and other memory of the kernel, the zygote, which is there once for all, and for bubblewrap files in scratch.
 *
 * bubblewrap: the zygote's descendants, that is monitor, head and spare of each sandbox.
 * gvisor: runsc, the gofer, the sentry and its stubs. The memory of the sandboxed processes is one memfd of the sentry, of which only parts are mapped at any time
 * and some by stubs that share one address space; Pss would miss pages and count others twice. So the memfd counts as what the kernel holds for it, once; files in scratch are part of it.
 */
export async function measureSandboxMemory(driver: "gvisor" | "bubblewrap"): Promise<number> {
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
  const bytes = await Promise.all([...members].map(async (pid) => (await readPss(pid)) + (driver === "gvisor" ? await readMemoryFile(pid) : 0)));
  return bytes.reduce((sum, one) => sum + one, 0) / MB;
}

/** The first of them is the zygote itself; bwrap, its parent, has the same words further back. */
function isZygote([program, ...words]: readonly string[]): boolean {
  return program === "/usr/bin/python3" && words.includes("sluice_worker.zygote");
}

/** Without the mappings of the sentry's memfd. */
async function readPss(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps`, "latin1").catch(() => "");
  let kilobytes = 0;
  let counts = true;
  for (const line of text.split("\n")) {
    if (/^[0-9a-f]+-[0-9a-f]+ /.test(line)) counts = !line.includes("/memfd:runsc-memory");
    else if (counts && line.startsWith("Pss:")) kilobytes += Number(line.split(/\s+/)[1]);
  }
  return kilobytes * 1024;
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
