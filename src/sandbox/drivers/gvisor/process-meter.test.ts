import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { killAll, listProcessTree, readStartTime } from "../../../processes.ts";
import { readPrivateBytes, startProcessMeter } from "./process-meter.ts";

const MB = 1024 * 1024;

test("a meter sees memory and processor time, forgets the peak when told, and reports going over the limit once", async () => {
  let memory = 10 * MB;
  const seen: number[] = [];
  const child = spawn("/bin/sh", ["-c", "while :; do :; done"]);
  const meter = startProcessMeter({
    measureMemory: async () => memory,
    listProcesses: async () => [child.pid!],
    memoryBytes: 100 * MB,
    intervalMs: 5,
    onOverLimit: (bytes) => seen.push(bytes),
  });
  try {
    await vi.waitFor(async () => expect((await meter.usage()).cpuMs).toBeGreaterThan(0), { timeout: 4_000 });
    memory = 60 * MB;
    await vi.waitFor(async () => expect((await meter.usage()).peakMemoryBytes).toBe(60 * MB));
    memory = 20 * MB;
    await meter.resetPeak();
    expect(await meter.usage()).toMatchObject({ peakMemoryBytes: 20 * MB, memoryKills: 0 });
    memory = 150 * MB;
    await vi.waitFor(() => expect(seen).toEqual([150 * MB]));
    expect(await meter.usage()).toMatchObject({ peakMemoryBytes: 150 * MB, memoryKills: 1 });
    expect(seen.length).toBe(1);
  } finally {
    meter.stop();
    child.kill("SIGKILL");
  }
});

test("private memory of a process is read, and is 0 once it is gone", async () => {
  expect(await readPrivateBytes(process.pid)).toBeGreaterThan(5 * MB);
  expect(await readPrivateBytes(999_999_999)).toBe(0);
});

test("killAll ends a process with everything below it", async () => {
  const child = spawn("/bin/sh", ["-c", "(sleep 60 & sleep 60 & wait) & echo up; wait"], { stdio: ["ignore", "pipe", "ignore"] });
  await once(child.stdout, "data");
  const tree = await vi.waitFor(async () => {
    const found = await listProcessTree([child.pid!]);
    expect(found.length).toBe(4);
    return found;
  });
  expect(await killAll(() => listProcessTree(tree), 5_000)).toEqual([]);
  expect(tree.map((pid) => readStartTime(pid))).toEqual([null, null, null, null]);
});
