import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test, vi } from "vitest";
import { readProcess, readStartTime } from "../../../processes.ts";
import { ProcessStarter, type StartedProcess, type StartRequest } from "./process-starter.ts";

const cat: StartRequest = { command: ["/bin/cat"], joinPaths: [] };
const shell = (script: string): StartRequest => ({ command: ["/bin/sh", "-c", script], joinPaths: [] });

/** Starts one process directly and one through the helper. */
async function startBoth(starter: ProcessStarter, request: StartRequest): Promise<StartedProcess[]> {
  return [await starter.start(request), await starter.start(request)];
}

test("only the first process is a child of this one", async () => {
  using starter = new ProcessStarter();
  const processes = await startBoth(starter, cat);
  const parents = await Promise.all(processes.map(async ({ pid }) => (await readProcess(pid))!.parent));
  expect(parents[0]).toBe(process.pid);
  expect((await readProcess(parents[1]!))!.parent).toBe(process.pid);
  for (const { kill, exited } of processes) {
    kill();
    expect(await exited).toEqual({ exitCode: null, signal: "SIGKILL", stderr: "" });
  }
});

test("carries every byte to stdin and from stdout, also from many processes that write at once", async () => {
  using starter = new ProcessStarter();
  const bytes = randomBytes(1 << 20);
  const echo = async (): Promise<void> => {
    const { channel, exited } = await starter.start(shell(`printf ready; head -c ${bytes.length} | cat`));
    const received = buffer(channel);
    channel.end(bytes);
    expect((await received).equals(Buffer.concat([Buffer.from("ready"), bytes]))).toBe(true);
    expect(await exited).toEqual({ exitCode: 0, signal: null, stderr: "" });
  };
  await Promise.all(Array.from({ length: 20 }, echo));
});

test("reports exit status, signal and the first and last 8 KB of stderr", async () => {
  using starter = new ProcessStarter();
  const noisy = shell("echo first >&2; head -c 100000 /dev/zero | tr '\\0' x >&2; echo last >&2; exit 7");
  for (const { exited } of await startBoth(starter, noisy)) {
    const { exitCode, signal, stderr } = await exited;
    expect([exitCode, signal, stderr.length]).toEqual([7, null, 16 * 1024]);
    expect(stderr).toMatch(/^first\nx+last\n$/);
  }
  for (const { exited } of await startBoth(starter, shell("kill -TERM $$"))) expect((await exited).signal).toBe("SIGTERM");
  const missing = { command: ["/nowhere/program"], joinPaths: [] };
  for (const { exited } of await startBoth(starter, missing)) expect((await exited).exitCode).toBe(127);
});

test("joins the cgroups before the command runs", async () => {
  using starter = new ProcessStarter();
  const directory = mkdtempSync(path.join(tmpdir(), "sluice-starter-"));
  const joinPaths = [path.join(directory, "a"), path.join(directory, "b")];
  for (const { exited } of await startBoth(starter, { command: ["/bin/true"], joinPaths })) expect((await exited).exitCode).toBe(0);
  expect(joinPaths.map((file) => readFileSync(file, "utf8"))).toEqual(["0\n", "0\n"]);
  const [first] = await startBoth(starter, { command: ["/bin/true"], joinPaths: ["/nowhere/join"] });
  expect((await first!.exited).exitCode).toBe(125);
  rmSync(directory, { recursive: true });
});

test("when the helper is killed, its processes are reported as ended and the next start uses a new helper", async () => {
  using starter = new ProcessStarter();
  const [, second] = await startBoth(starter, cat);
  const helper = (await readProcess(second!.pid))!.parent;
  process.kill(helper, "SIGKILL");
  expect(await second!.exited).toEqual({ exitCode: null, signal: "SIGKILL", stderr: "" });
  const third = await starter.start(cat);
  expect((await readProcess(third.pid))!.parent).not.toBe(helper);
  third.channel.end("x");
  expect(await buffer(third.channel)).toEqual(Buffer.from("x"));
  second!.channel.destroy();
});

test("the helper ends with its starter", async () => {
  const starter = new ProcessStarter();
  const [first, second] = await startBoth(starter, cat);
  const helper = (await readProcess(second!.pid))!.parent;
  starter[Symbol.dispose]();
  expect(await second!.exited).toEqual({ exitCode: null, signal: "SIGKILL", stderr: "" });
  first!.kill();
  second!.channel.destroy();
  await vi.waitUntil(() => readStartTime(helper) === null, { timeout: 60_000 });
});
