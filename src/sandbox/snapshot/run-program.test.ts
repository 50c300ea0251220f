import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { runProgram, tryProgram } from "./run-program.ts";

const moduleUrl = new URL("./run-program.ts", import.meta.url).href;

/** A program that leaves a grandchild in the background and says its pid. */
const forking = ["-c", "sleep 300 & echo $!; wait"];

describe("runProgram", () => {
  it("gives what was written, and what the environment adds", async () => {
    expect(await runProgram({ program: "sh", args: ["-c", 'echo "$ADDED"; umask'], extraEnvironment: { ADDED: "a b" } })).toBe("a b\n0022");
  });

  it("says how a program failed, with its last words", async () => {
    await expect(runProgram({ program: "sh", args: ["-c", "echo why >&2; exit 7"] })).rejects.toThrow("sh exited with status 7:\nwhy");
    expect(await tryProgram({ program: "no-such-program-here", args: [] })).toMatchObject({ exitCode: 127 });
  });

  it("ends on abort with everything that was started", async () => {
    const abort = new AbortController();
    let pid = 0;
    const onLine = (line: string): void => {
      pid = Number(line);
      abort.abort(new Error("enough"));
    };
    await expect(runProgram({ program: "sh", args: forking, onLine, signal: abort.signal })).rejects.toThrow("enough");
    await expectGone(pid);
  });

  it("dies with its host by SIGKILL, with everything that was started", async () => {
    const script = `import { runProgram } from ${JSON.stringify(moduleUrl)};
      await runProgram({ program: "sh", args: ${JSON.stringify(forking)}, onLine: (line) => console.log(line) });`;
    const host = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = (await once(host.stdout, "data")) as [Buffer];
    expect(await isRunning(Number(String(line)))).toBe(true);
    host.kill("SIGKILL");
    await expectGone(Number(String(line)));
  });
});

async function isRunning(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return status !== "" && !/\) [ZX] /.test(status);
}

async function expectGone(pid: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  while ((await isRunning(pid)) && performance.now() < deadline) await wait(20);
  expect(await isRunning(pid)).toBe(false);
}
