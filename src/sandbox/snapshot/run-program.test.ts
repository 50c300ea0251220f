import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { runProgram, tryProgram } from "./run-program.ts";

const moduleUrl = new URL("./run-program.ts", import.meta.url).href;

/** A program that starts a grandchild in the background and prints its pid. */
const forking = ["-c", "sleep 300 & echo $!; wait"];

describe("runProgram", () => {
  it("returns stdout and passes on the extra environment", async () => {
    expect(await runProgram({ program: "sh", args: ["-c", 'echo "$ADDED"; umask'], extraEnvironment: { ADDED: "a b" } })).toBe("a b\n0022");
  });

  it("reports the exit status and the last output of a failed program", async () => {
    await expect(runProgram({ program: "sh", args: ["-c", "echo why >&2; exit 7"] })).rejects.toThrow("sh exited with status 7:\nwhy");
    expect(await tryProgram({ program: "no-such-program-here", args: [] })).toMatchObject({ exitCode: 127 });
  });

  it("kills the program and its children on abort", async () => {
    const abort = new AbortController();
    let pid = 0;
    const onLine = (line: string): void => {
      pid = Number(line);
      abort.abort(new Error("enough"));
    };
    await expect(runProgram({ program: "sh", args: forking, onLine, signal: abort.signal })).rejects.toThrow("enough");
    await expectEnded(pid);
  });

  it("kills the program and its children when the host is killed by SIGKILL", async () => {
    const script = `import { runProgram } from ${JSON.stringify(moduleUrl)};
      await runProgram({ program: "sh", args: ${JSON.stringify(forking)}, onLine: (line) => console.log(line) });`;
    const host = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = (await once(host.stdout, "data")) as [Buffer];
    expect(await isRunning(Number(String(line)))).toBe(true);
    host.kill("SIGKILL");
    await expectEnded(Number(String(line)));
  });
});

async function isRunning(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return status !== "" && !/\) [ZX] /.test(status);
}

async function expectEnded(pid: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  while ((await isRunning(pid)) && performance.now() < deadline) await wait(20);
  expect(await isRunning(pid)).toBe(false);
}
