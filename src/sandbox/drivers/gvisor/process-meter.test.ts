import { spawn } from "node:child_process";
import { expect, test, vi } from "vitest";
import { readPrivateBytes, startProcessMeter } from "./process-meter.ts";

const MB = 1024 * 1024;

test("a meter measures memory and CPU time, resets the peak, and reports going over the limit once", async () => {
  let memory = 10 * MB;
  const reported: number[] = [];
  const child = spawn("/bin/sh", ["-c", "while :; do :; done"]);
  const meter = startProcessMeter({
    measureMemory: async () => memory,
    listProcesses: async () => [child.pid!],
    memoryBytes: 100 * MB,
    intervalMs: 5,
    onOverLimit: (bytes) => reported.push(bytes),
  });
  try {
    await vi.waitFor(async () => expect((await meter.usage()).cpuMs).toBeGreaterThan(0), { timeout: 4_000 });
    memory = 60 * MB;
    await vi.waitFor(async () => expect((await meter.usage()).peakMemoryBytes).toBe(60 * MB));
    memory = 20 * MB;
    await meter.resetPeak();
    expect(await meter.usage()).toMatchObject({ peakMemoryBytes: 20 * MB, memoryKills: 0 });
    memory = 150 * MB;
    await vi.waitFor(() => expect(reported).toEqual([150 * MB]));
    expect(await meter.usage()).toMatchObject({ peakMemoryBytes: 150 * MB, memoryKills: 1 });
    expect(reported.length).toBe(1);
  } finally {
    meter.stop();
    child.kill("SIGKILL");
  }
});

test("readPrivateBytes returns the private memory of a process, and 0 when it does not exist", async () => {
  expect(await readPrivateBytes(process.pid)).toBeGreaterThan(5 * MB);
  expect(await readPrivateBytes(999_999_999)).toBe(0);
});
