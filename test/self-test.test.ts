import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Runtime } from "../src/create-runtime.ts";
import { chooseDriver, examineDriver } from "../src/cells/choose-driver.ts";
import type { SandboxDriver } from "../src/sandbox/contract.ts";
import { createLeakyDriver } from "./fixtures/leaky-driver.ts";
import { openTestRuntime } from "./test-runtime.ts";

let runtime: Runtime;
let leaky: SandboxDriver;
let cacheDirectory: string;

beforeAll(() => {
  runtime = openTestRuntime("bubblewrap");
  leaky = createLeakyDriver();
  cacheDirectory = mkdtempSync(path.join(tmpdir(), "sluice-self-test-"));
});
afterAll(async () => {
  await leaky[Symbol.asyncDispose]();
  await runtime.close();
  rmSync(cacheDirectory, { recursive: true });
}, 60_000);

test("a driver that enforces nothing fails every check, and no check is stored as passed", async () => {
  const report = await examineDriver({ driver: leaky, snapshot: await runtime.snapshot(), cacheDirectory, gate: runtime.gate });
  const checks = [
    { name: "network", detail: expect.stringMatching(/^got through: TCP to this machine, .*UDP to this machine/) as string },
    { name: "dns", detail: "got through: DNS lookup" },
    { name: "file system", detail: `got through: writing to /etc${tmpdir() === "/tmp" ? ", reading a file of the host" : ""}` },
    { name: "syscalls", detail: "got through: mount, a user namespace, ptrace, chroot" },
    { name: "processes", detail: "uid 0, sees 2 processes, 164 threads at once, 64 are allowed" },
    { name: "capabilities", detail: expect.stringMatching(/^effective capabilities 0x1f/) as string },
    { name: "network", detail: "the sandbox reached a port of this machine" },
    { name: "memory", detail: expect.stringMatching(/^allocating 1 GB under a limit of 384 MB ended as (ok|timeout), /) as string },
  ].map((check) => ({ ...check, ok: false }));
  expect(report).toEqual({
    name: "gvisor",
    usable: false,
    reason: `Its self-test failed: ${report.checks.map(({ name, detail }) => `${name} (${detail})`).join("; ")}.`,
    fix: "Use another driver, and report this.",
    checks,
    notes: ["leaky 1.0"],
  });
  expect(readdirSync(cacheDirectory)).toEqual([]);
}, 120_000);

test("auto skips a failing driver, and choosing it by name is an error", async () => {
  const options = { snapshot: await runtime.snapshot(), cacheDirectory, gate: runtime.gate };
  const working = (await runtime.drivers()).find(({ name }) => name === "bubblewrap")!;
  expect(await chooseDriver({ wanted: "auto", drivers: [leaky, working], ...options })).toBe(working);
  const open = async (): Promise<never> => await Promise.reject(new Error("The engine is gone."));
  const broken: SandboxDriver = { ...leaky, open };
  await expect(chooseDriver({ wanted: "gvisor", drivers: [broken, working], ...options })).rejects.toMatchObject({
    code: "NO_SANDBOX",
    message:
      "The driver gvisor cannot be used. gvisor: Its self-test could not run: The engine is gone. Try `sluice snapshot verify` and `sluice prepare`.",
    hint: "Nothing was run. `sluice doctor` shows every check, `sluice snapshot verify` whether the snapshot is intact.",
  });
}, 120_000);

test("the driver is tested again when its stored result cannot be read", async () => {
  const options = { snapshot: await runtime.snapshot(), cacheDirectory, gate: runtime.gate };
  const driver = (await runtime.drivers()).find(({ name }) => name === "bubblewrap")!;
  const { checks } = await examineDriver({ driver, ...options });
  const passes = path.join(cacheDirectory, "self-tests");
  for (const name of readdirSync(passes)) writeFileSync(path.join(passes, name), '[{"name":"python"}]');
  expect((await examineDriver({ driver, ...options })).checks).toHaveLength(checks.length);
}, 120_000);

test("sandboxes of the self-test count towards the limit of all sandboxes", async () => {
  await using full = openTestRuntime("bubblewrap", { maxSandboxes: 1, queueDeadlineMs: 50 });
  const driver = (await full.drivers()).find(({ name }) => name === "bubblewrap")!;
  const leave = await full.gate.enter();
  const report = await examineDriver({ driver, snapshot: await full.snapshot(), cacheDirectory, gate: full.gate, fresh: true });
  expect(report).toMatchObject({
    usable: false,
    reason: "Its self-test could not run: No sandbox became free within 0.05 s: all 1 are in use.",
  });
  leave();
}, 60_000);
