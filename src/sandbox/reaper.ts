import { spawn } from "node:child_process";
import { extname, join } from "node:path";
import type { Socket } from "node:net";
import { currentProcess, toProcessKey } from "./host-process.ts";

export interface Reaper {
  /** The host closes in order: the reaper leaves at once and touches nothing. */
  release(): void;
}

/**
 * Starts a small process of its own session that outlives this one and cleans up after it, however it dies. It knows of the death by the end
 * of a pipe that only this process holds, so it also works for SIGKILL. It keeps neither this process alive nor a terminal busy.
 */
export function startReaper({ directory }: { directory: string }): Reaper {
  const program = join(import.meta.dirname, `reaper-process${extname(import.meta.filename)}`);
  const child = spawn(process.execPath, ["--no-warnings", program, directory, toProcessKey(currentProcess())], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    cwd: "/",
    env: {},
  });
  child.on("error", () => {}); // without a reaper the next host clears what is left
  child.stdin.on("error", () => {});
  child.unref();
  (child.stdin as unknown as Socket).unref();
  return {
    release() {
      child.stdin.end(RELEASE);
    },
  };
}

/** What the host writes before it closes the pipe on purpose. */
const RELEASE = "released\n";
