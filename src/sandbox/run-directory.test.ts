import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { findCgroups } from "./cgroup/host-cgroups.ts";
import { currentProcess, readStartTime, toProcessKey } from "../processes.ts";
import { openRunDirectory } from "./run-directory.ts";

const home = `sluice-${process.getuid!()}`;
const cgroups = await findCgroups();
let parent: string;
const started: ChildProcess[] = [];

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "sluice-test-"));
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
  rmSync(parent, { recursive: true, force: true });
});

interface HostReport {
  readonly directory: string;
  readonly recorded: string;
  readonly sleeper: number;
  readonly grandchild: number;
  readonly inCgroup: number | null;
  readonly cgroupPaths: readonly string[];
  readonly reaper: number;
}

/** Starts a host process that opens a run directory, starts processes and reports them. */
async function startHost(mode: "stay" | "close"): Promise<{ host: ChildProcess; report: HostReport }> {
  const host = spawn(
    process.execPath,
    ["--no-warnings", join(import.meta.dirname, "fixtures", "host-with-run-directory.ts"), parent, mode],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  started.push(host);
  const [line] = (await once(host.stdout.setEncoding("utf8"), "data")) as [string];
  return { host, report: JSON.parse(line) as HostReport };
}

const hasEnded = (pid: number): boolean => readStartTime(pid) === null;

describe("a run directory", () => {
  test("is private to the user and contains separate lease directories", async () => {
    await using run = await openRunDirectory({ parent });
    expect(lstatSync(join(parent, home)).mode & 0o777).toBe(0o700);
    expect(lstatSync(run.path).mode & 0o777).toBe(0o700);
    const [first, second] = [await run.newLeaseDirectory(), await run.newLeaseDirectory()];
    expect(first.id).not.toBe(second.id);
    expect(`${run.runscState}/runsc-${first.id}.sock`.length - parent.length + "/tmp".length).toBeLessThan(107);
    await first.remove();
    expect(existsSync(first.path)).toBe(false);
    expect(existsSync(second.path)).toBe(true);
  });

  test("is removed completely on close, and can be closed twice", async () => {
    const run = await openRunDirectory({ parent });
    await run.newLeaseDirectory();
    await run.close();
    await run.close();
    expect(readdirSync(join(parent, home))).toEqual([]);
  });

  test("is refused when its path is a link", async () => {
    mkdirSync(join(parent, "elsewhere"));
    symlinkSync(join(parent, "elsewhere"), join(parent, home));
    await expect(openRunDirectory({ parent })).rejects.toThrow(
      `The run directory ${join(parent, home)} cannot be used: it is not a directory.`,
    );
  });

  test.runIf(process.getuid!() === 0)("is refused when its path belongs to another user", async () => {
    mkdirSync(join(parent, home));
    const { chownSync } = await import("node:fs");
    chownSync(join(parent, home), 12345, 12345);
    await expect(openRunDirectory({ parent })).rejects.toThrow("it belongs to another user (uid 12345)");
  });

  test("removes the rights of other users from an existing directory of ours", async () => {
    mkdirSync(join(parent, home));
    chmodSync(join(parent, home), 0o777);
    await using run = await openRunDirectory({ parent });
    expect(run.path).toContain(home);
    expect(lstatSync(join(parent, home)).mode & 0o777).toBe(0o700);
  });

  test("removes the directories of dead hosts and keeps those of living ones", async () => {
    const { namespace } = currentProcess();
    const dead = join(parent, home, `999999999-1-${namespace}-abcd`);
    const alive = join(parent, home, `${toProcessKey(currentProcess())}-abcd`);
    const foreign = join(parent, home, "1-1-zzzzzzz-abcd");
    for (const directory of [dead, alive, foreign]) mkdirSync(join(directory, "leases"), { recursive: true });
    writeFileSync(join(dead, "leases", "x"), "");
    await using run = await openRunDirectory({ parent });
    expect([dead, alive, foreign, run.path].map((path) => existsSync(path))).toEqual([false, true, true, true]);
  });
});

// Starting two programs takes a while on a busy machine. The test measures the time after the kill.
describe("the reaper", { timeout: 30_000 }, () => {
  test("removes processes, cgroups and directories within 5 s of the host's SIGKILL", async () => {
    const { host, report } = await startHost("stay");
    expect(hasEnded(report.grandchild)).toBe(false);
    const killedAt = performance.now();
    host.kill("SIGKILL");
    await vi.waitFor(
      () => {
        expect([report.sleeper, report.grandchild, report.inCgroup ?? report.sleeper].map(hasEnded)).toEqual([true, true, true]);
        expect([report.directory, report.recorded, ...report.cgroupPaths].filter((path) => existsSync(path))).toEqual([]);
      },
      { timeout: 5_000, interval: 20 },
    );
    expect(performance.now() - killedAt).toBeLessThan(5_000);
    await vi.waitFor(() => expect(hasEnded(report.reaper)).toBe(true), { timeout: 5_000, interval: 20 });
    const hierarchies = !cgroups.available ? 0 : cgroups.version === 1 ? new Set(Object.values(cgroups.parents)).size : 1;
    expect(report.cgroupPaths.length).toBe(hierarchies);
  });

  test("ignores the signals of a terminal", async () => {
    const { host, report } = await startHost("stay");
    await vi.waitFor(() => expect(catches(report.reaper, 1)).toBe(true), { timeout: 10_000, interval: 20 });
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(report.reaper, signal);
    host.kill("SIGKILL");
    await vi.waitFor(() => expect(existsSync(report.directory)).toBe(false), { timeout: 5_000, interval: 20 });
  });

  test("exits at once when the host closes normally, removes nothing, and does not keep the host alive", async () => {
    const { host, report } = await startHost("close");
    const [exitCode] = (await once(host, "exit")) as [number];
    expect(exitCode).toBe(0);
    await vi.waitFor(() => expect(hasEnded(report.reaper)).toBe(true), { timeout: 5_000, interval: 20 });
    expect(existsSync(report.directory)).toBe(false);
    expect(existsSync(report.recorded)).toBe(true); // its owner must remove it
  });
});

/** Whether a process has a handler for the signal. */
function catches(pid: number, signal: number): boolean {
  const status = readFileOrEmpty(`/proc/${pid}/status`);
  const mask = BigInt(`0x${/^SigCgt:\s+([0-9a-f]+)/m.exec(status)?.[1] ?? "0"}`);
  return ((mask >> BigInt(signal - 1)) & 1n) === 1n;
}

function readFileOrEmpty(path: string): string {
  try {
    return process.getBuiltinModule("node:fs").readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
