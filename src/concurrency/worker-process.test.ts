import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { readStartTime } from "../processes.ts";
import { WorkerProcess } from "./worker-process.ts";

const none = Buffer.alloc(0);

function open(timeoutMs = 60_000): WorkerProcess {
  const program = path.join(import.meta.dirname, "fixtures/worker-program");
  const worker = new WorkerProcess({ program, heapMegabytes: 64, bufferMegabytes: 64, timeoutMs });
  onTestFinished(() => worker.close());
  return worker;
}

async function waitUntilGone(pid: number): Promise<void> {
  await vi.waitFor(() => expect(readStartTime(pid)).toBeNull(), { timeout: 20_000 });
}

test("answers requests of any size in turn, in one process without our environment", async () => {
  const worker = open();
  const sizes = [0, 1, 65_536, 20_000_000];
  expect(await Promise.all(sizes.map((size) => worker.ask("bytes", Buffer.alloc(size))))).toEqual(sizes);
  const { pid } = worker;
  expect(await worker.ask("environment", none)).toEqual({ PWD: "/" }); // set by the shell
  expect(worker.pid).toBe(pid);
});

describe("a request fails alone, and the next one gets a new process, after", () => {
  test.each(["exit", "heap", "buffers", "throw"])("%s", async (kind) => {
    const worker = open();
    const [failed, next] = await Promise.allSettled([worker.ask(kind, none), worker.ask("bytes", Buffer.alloc(9))]);
    expect(failed).toMatchObject({ status: "rejected", reason: { reason: "ended" } });
    expect(next).toEqual({ status: "fulfilled", value: 9 });
  });

  test("its deadline", async () => {
    const worker = open(3_000);
    await worker.ask("bytes", none); // the start does not count
    const { pid } = worker;
    await expect(worker.ask("loop", none)).rejects.toMatchObject({ reason: "timeout" });
    await waitUntilGone(pid!);
    expect(await worker.ask("bytes", none)).toBe(0);
  });

  test.each([
    ["more than one answer", Buffer.from('\0\0\0\x0f{"answer":null}\0\0\0\x0f{"answer":null}')],
    ["an answer that is not JSON", Buffer.from("\0\0\0\x04nope")],
    ["an answer that is not an object", Buffer.from("\0\0\0\x04null")],
    ["a huge answer", Buffer.from("\xff\xff\xff\xff....", "latin1")],
  ])("%s", async (_, bytes) => {
    const worker = open();
    const [failed, next] = await Promise.allSettled([worker.ask("garbage", bytes), worker.ask("bytes", none)]);
    expect(failed).toMatchObject({ status: "rejected", reason: { reason: "ended" } });
    expect(next).toEqual({ status: "fulfilled", value: 0 });
  });
});

test("a program that cannot start is reported as unavailable, with its message", async () => {
  const program = path.join(import.meta.dirname, "fixtures/no-such-program");
  await using worker = new WorkerProcess({ program, heapMegabytes: 64, bufferMegabytes: 64, timeoutMs: 1000 });
  await expect(worker.ask("bytes", none)).rejects.toMatchObject({
    reason: "unavailable",
    message: expect.stringContaining("Cannot find module"),
  });
});

test("closing kills it during a request; later requests are refused", async () => {
  const worker = open();
  await worker.ask("bytes", none);
  const { pid } = worker;
  const running = expect(worker.ask("loop", none)).rejects.toMatchObject({ reason: "closed" });
  await worker.close();
  await running;
  await waitUntilGone(pid!);
  await expect(worker.ask("bytes", none)).rejects.toMatchObject({ reason: "closed" });
});

test("it inherits no descriptor of its host, and ends when the host is killed", async () => {
  const host = path.join(import.meta.dirname, "fixtures/host-of-worker.ts");
  const child = spawn("/bin/sh", ["-c", 'exec "$0" "$1" 7</etc/hostname 9</etc/hostname', process.execPath, host], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const { pid, descriptors } = JSON.parse(line) as { pid: number; descriptors: string[] };
  expect(descriptors.filter((name) => name.startsWith("/") && name !== "/dev/null")).toEqual([]);
  expect(descriptors.filter((name) => name.startsWith("socket:"))).toHaveLength(1 + 1); // the channel and stderr
  child.kill("SIGKILL");
  await waitUntilGone(pid);
});

test("an idle process does not keep its host alive", async () => {
  const program = `
    const { WorkerProcess } = await import(${JSON.stringify(path.join(import.meta.dirname, "worker-process.ts"))});
    const worker = new WorkerProcess({ program: ${JSON.stringify(path.join(import.meta.dirname, "fixtures/worker-program"))}, heapMegabytes: 64, bufferMegabytes: 64, timeoutMs: 1000 });
    console.log(await worker.ask("bytes", Buffer.alloc(3)), worker.pid);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: ["ignore", "pipe", "inherit"] });
  const [[line], [status]] = await Promise.all([
    once(createInterface({ input: child.stdout }), "line") as Promise<[string]>,
    once(child, "exit"),
  ]);
  expect([line, status]).toEqual([expect.stringMatching(/^3 \d+$/), 0]);
  await waitUntilGone(Number(line.split(" ")[1]));
});
