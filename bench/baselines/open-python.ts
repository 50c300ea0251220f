import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import readline from "node:readline";
import { toRootfsBwrapArguments } from "../../src/sandbox/snapshot/run-program.ts";

/** A script of this directory that runs in the Python of the snapshot, without Sluice. It answers each input line with one line of JSON. */
export interface BarePython extends AsyncDisposable {
  /** The first line that the script prints by itself. */
  next(): Promise<Record<string, number>>;
  ask(command: string): Promise<Record<string, number>>;
}

export interface BarePythonOptions {
  readonly rootfs: string;
  readonly script: string;
  readonly args?: readonly string[];
  /** More files or directories to bind: path inside to path on the host. */
  readonly binds?: Readonly<Record<string, string>>;
  readonly pythonPath?: string;
}

export function openPython({ rootfs, script, args = [], binds = {}, pythonPath }: BarePythonOptions): BarePython {
  const inside = toRootfsBwrapArguments({
    rootfs,
    args: ["/usr/bin/python3", `/tmp/bench/${script}`, ...args],
    binds: { "/tmp/bench": import.meta.dirname, ...binds },
    environment: {
      MPLCONFIGDIR: "/sandbox/.matplotlib",
      OPENBLAS_NUM_THREADS: "1",
      OMP_NUM_THREADS: "1",
      PYTHONHASHSEED: "0",
      ...(pythonPath === undefined ? {} : { PYTHONPATH: pythonPath }),
    },
  });
  const child = spawn("bwrap", inside, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "close");
  const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  child.stdin.on("error", () => {}); // the missing answer reports it

  async function next(): Promise<Record<string, number>> {
    const line = await lines.next();
    if (line.done === true) throw new Error(`${path.basename(script)} exited without an answer.`);
    return JSON.parse(line.value) as Record<string, number>;
  }

  return {
    next,
    ask(command) {
      child.stdin.write(`${command}\n`);
      return next();
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await ended;
    },
  };
}
