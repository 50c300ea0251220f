import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { listInCgroups } from "../test/fixtures/host-processes.ts";
import { listProcessTree, readStartTime } from "../src/processes.ts";

export interface Started {
  /** Remembers the processes that the server has now. */
  look(): Promise<void>;
  /** After the end of the server: what it left behind, each as a sentence. */
  leftBehind(): Promise<string[]>;
}

/** Counts what the server starts, so that other programs of this machine do not matter. */
export function watchServer({ pid, temporary }: { readonly pid: number; readonly temporary: string }): Started {
  const seen = new Map<string, { pid: number; command: string }>();
  return {
    async look() {
      for (const one of await listProcessTree([pid])) {
        const startTime = readStartTime(one);
        if (startTime !== null) seen.set(`${one}-${startTime}`, { pid: one, command: readCommand(one) });
      }
    },
    async leftBehind() {
      const alive = [...seen].filter(([key, one]) => key === `${one.pid}-${readStartTime(one.pid)}`);
      const files = readdirSync(temporary, { recursive: true, withFileTypes: true })
        .filter((entry) => !(entry.isDirectory() && entry.parentPath === temporary && /^sluice-\d+$/.test(entry.name)))
        .map((entry) => path.join(entry.parentPath, entry.name).slice(temporary.length + 1));
      return [
        ...alive.map(([, one]) => `The process ${one.pid} is still running: ${one.command}`),
        ...(await listInCgroups(pid)).map((one) => `A process is still in a cgroup of the server: ${one}`),
        ...files.map((file) => `A temporary file was left behind: ${file}`),
      ];
    },
  };
}

function readCommand(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").join(" ").trim();
  } catch {
    return "(already gone)";
  }
}
