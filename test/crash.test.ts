import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cacheDirectory } from "../src/config/environment.ts";
import type { Runtime } from "../src/create-runtime.ts";
import { findSnapshot } from "../src/sandbox/snapshot/find-snapshot.ts";
import { openTestRuntime, testedDrivers } from "./test-runtime.ts";

const main = path.resolve(import.meta.dirname, "../src/cli/main.ts");

/** Processes of this host's sandboxes: they are in its cgroups, or have its run directory in their arguments. */
async function listSandboxProcesses(hostPid: number, runHome: string): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name) || Number(name) === hostPid) continue;
    const [cgroup, command] = await Promise.all(
      ["cgroup", "cmdline"].map((file) => readFile(`/proc/${name}/${file}`, "utf8").catch(() => "")),
    );
    if (cgroup!.includes(`sluice-${hostPid}-`) || command!.includes(runHome)) found.push(Number(name));
  }
  return found;
}

async function listCgroups(hostPid: number): Promise<string[]> {
  const found: string[] = [];
  for (const top of ["/sys/fs/cgroup", ...(await readdir("/sys/fs/cgroup")).map((name) => `/sys/fs/cgroup/${name}`)]) {
    const names = await readdir(top).catch(() => []);
    found.push(...names.filter((name) => name.startsWith(`sluice-${hostPid}-`)).map((name) => `${top}/${name}`));
  }
  return found;
}

async function listRemains(hostPid: number, runHome: string): Promise<unknown> {
  const mounts = (await readFile("/proc/self/mounts", "utf8")).split("\n").filter((line) => line.includes(runHome));
  const entries = await readdir(runHome, { recursive: true }).catch(() => [] as string[]);
  const directories = entries.filter((entry) => entry.split("/").length > 1);
  return { processes: await listSandboxProcesses(hostPid, runHome), cgroups: await listCgroups(hostPid), mounts, directories };
}

const nothingLeft = { processes: [], cgroups: [], mounts: [], directories: [] };

/** Polls for at most 5 s, the time limit of rule 7 in SPEC.md. */
async function expectNothingLeft(hostPid: number, runHome: string): Promise<void> {
  const deadline = performance.now() + 5_000;
  let left = await listRemains(hostPid, runHome);
  while (JSON.stringify(left) !== JSON.stringify(nothingLeft) && performance.now() < deadline) {
    await wait(50);
    left = await listRemains(hostPid, runHome);
  }
  expect(left).toEqual(nothingLeft);
}

interface Host {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly runHome: string;
  readonly output: () => string;
  /** Resolves when stdout or stderr contains the text. */
  waitForOutput(text: string): Promise<void>;
}

async function startHost(driver: string, code: string, environment: Record<string, string> = {}): Promise<Host> {
  return await startProgram([main, "run", "-", "--driver", driver], code, environment);
}

async function startProgram(args: readonly string[], code = "", environment: Record<string, string> = {}): Promise<Host> {
  const runHome = await mkdtemp(path.join(tmpdir(), "sl-"));
  const child = spawn(process.execPath, ["--no-warnings", ...args], {
    cwd: runHome,
    env: { ...process.env, TMPDIR: runHome, ...environment },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let output = "";
  const watchers: (() => void)[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      for (const watch of watchers) watch();
    });
  }
  child.stdin.end(code);
  const waitForOutput = async (text: string): Promise<void> =>
    await new Promise((resolve, reject) => {
      const look = (): void => {
        if (output.includes(text)) resolve();
      };
      watchers.push(look);
      child.once("exit", () => reject(new Error(`ended before it showed ${text}: ${output}`)));
      look();
    });
  return { child, pid: child.pid!, runHome, output: () => output, waitForOutput };
}

describe.each(testedDrivers)("crashes on %s", (driver) => {
  let runtime: Runtime;
  beforeAll(() => {
    runtime = openTestRuntime(driver);
  });
  afterAll(async () => await runtime.close(), 60_000);

  const endless = "import time\nprint('running', flush=True)\nwhile True: time.sleep(0.01)";

  test("kill -9 of the host while a cell runs leaves nothing behind after 5 s", async () => {
    const host = await startHost(driver, endless);
    await host.waitForOutput("running");
    expect((await listSandboxProcesses(host.pid, host.runHome)).length).toBeGreaterThan(0);
    host.child.kill("SIGKILL");
    await once(host.child, "exit");
    await expectNothingLeft(host.pid, host.runHome);
    await rm(host.runHome, { recursive: true });
  });

  test.each(["starting", "warm", "shipping", "idle", "closing"])(
    "kill -9 of the host in the phase %s leaves nothing behind after 5 s",
    async (phase) => {
      const host = await startProgram([path.resolve(import.meta.dirname, "fixtures/phase-host.ts"), driver, phase]);
      await host.waitForOutput(phase);
      if (phase === "starting") await waitForEngine(host);
      host.child.kill("SIGKILL");
      await once(host.child, "exit");
      await expectNothingLeft(host.pid, host.runHome);
      await rm(host.runHome, { recursive: true });
    },
    60_000,
  );

  test("after kill -9 of the engine while the sandbox starts, the error is reported or another one is started, and nothing is left", async () => {
    const cache = await linkCache(); // gVisor takes the memory image for damaged and builds another one
    const host = await startHost(driver, "print(6 * 7)", { SLUICE_CACHE: cache });
    for (const pid of await waitForEngine(host)) killQuietly(pid);
    const [status] = (await once(host.child, "close")) as [number];
    const report = /^sluice: The (bubblewrap|gVisor) .*(could not start a sandbox|did not start).* SIGKILL/m;
    if (status === 0) expect(host.output()).toContain("\n42\n");
    else expect([status, host.output()]).toEqual([3, expect.stringMatching(report)]);
    await expectNothingLeft(host.pid, host.runHome);
    await rm(cache, { recursive: true });
    await rm(host.runHome, { recursive: true });
  }, 180_000);

  test("Ctrl-C stops the cell, cleans up and prints a message", async () => {
    const host = await startHost(driver, endless);
    await host.waitForOutput("running");
    host.child.kill("SIGINT");
    const [status] = (await once(host.child, "exit")) as [number];
    expect(status).toBe(130);
    expect(host.output()).toContain("interrupted; the cell was stopped and its sandbox removed");
    await expectNothingLeft(host.pid, host.runHome);
    await rm(host.runHome, { recursive: true });
  });

  test("a run that ends normally leaves nothing behind", async () => {
    const host = await startHost(driver, "1 + 1");
    const [status] = (await once(host.child, "exit")) as [number];
    expect([status, host.output()]).toEqual([0, expect.stringContaining("\n2\n")]);
    await expectNothingLeft(host.pid, host.runHome);
    await rm(host.runHome, { recursive: true });
  });

  test("kill -9 of every process of the sandbox is reported as a lost sandbox, and the next cell works", async () => {
    await using cellSession = await runtime.openCellSession();
    expect((await cellSession.run({ code: "kept = 5" })).status).toBe("ok");
    const outcome = await cellSession.run({ code: endless, onOutput: () => void killSandboxes(process.pid) });
    expect(outcome).toMatchObject({
      status: expect.stringMatching(/^(sandbox_lost|crashed)$/),
      error: { message: expect.stringMatching(/gone|was killed|exited/) },
    });
    const next = await cellSession.run({ code: "globals().get('kept')" });
    expect(next.status).toBe("ok");
    const kept = next.resultJson === null ? null : (JSON.parse(next.resultJson) as unknown);
    const replaced = next.diagnostics["sandboxReplaced"] as { variables: string } | undefined;
    expect(replaced?.variables === "lost" ? null : 5, "the report about the variables is true").toBe(kept);
  });

  test("kill -9 of the sandbox while it receives an input is reported, and the next call gets a new sandbox", async () => {
    await using cellSession = await runtime.openCellSession();
    expect((await cellSession.run({ code: "kept = 5" })).status).toBe("ok");
    cellSession.bind("big", { format: "bytes", bytes: Buffer.alloc(200 * 1024 * 1024, 1) });
    const running = cellSession.run({ code: "len(big)" });
    await Promise.all([
      killSandboxes(process.pid),
      expect(running).rejects.toMatchObject({
        code: "SANDBOX_LOST",
        message: "The sandbox ended while it received the input big. The cell was not run.",
      }),
    ]);
    expect(await cellSession.run({ code: "[kept, len(big)]" })).toMatchObject({
      status: "ok",
      resultJson: `[5,${200 * 1024 * 1024}]`,
      diagnostics: { sandboxReplaced: { variables: "replayed", cells: 1 } },
    });
  });

  test("kill -9 of an idle sandbox is noticed, and the outcome reports whether the variables were restored", async () => {
    await using cellSession = await runtime.openCellSession();
    await cellSession.run({ code: "kept = 5" });
    await killSandboxes(process.pid);
    const next = await cellSession.run({ code: "globals().get('kept')" });
    const after = next.status === "ok" ? next : await cellSession.run({ code: "globals().get('kept')" });
    expect(after.status).toBe("ok");
    const replaced = [next, after]
      .map((outcome) => outcome.diagnostics["sandboxReplaced"] as { variables: string } | undefined)
      .find((found) => found !== undefined);
    expect(replaced).toBeDefined();
    expect(after.resultJson === null ? null : JSON.parse(after.resultJson)).toBe(replaced!.variables === "lost" ? null : 5);
  });

  test("a damaged snapshot is refused with a hint, and verify names the file", async () => {
    const cache = await copyCache();
    const rootfs = path.join(cache, "snapshots", (await findSnapshot({ cacheDirectory: cacheDirectory() }))!.id, "rootfs");
    await rm(path.join(rootfs, "usr/local/lib/python3.13/dist-packages/numpy/__init__.py"));
    await rm(path.join(rootfs, "usr/local/lib/python3.13/dist-packages/numpy/__pycache__"), { recursive: true });
    const host = await startHost(driver, "1 + 1", { SLUICE_CACHE: cache });
    const [status] = (await once(host.child, "exit")) as [number];
    const why = {
      gvisor: /sandbox did not start: the worker failed: .*numpy/,
      bubblewrap: /zygote ended with exit status 1\..*numpy/s,
    };
    expect([status, host.output()]).toEqual([3, expect.stringMatching(why[driver as "gvisor" | "bubblewrap"])]);
    expect(host.output()).toContain(
      "Nothing was run. `sluice doctor` shows every check, `sluice snapshot verify` whether the snapshot is intact.",
    );
    await expectNothingLeft(host.pid, host.runHome);
    const verify = await collect([main, "snapshot", "verify"], { SLUICE_CACHE: cache });
    expect(verify).toMatchObject({ status: 1, output: expect.stringContaining("numpy/__init__.py") });
    await rm(cache, { recursive: true });
    await rm(host.runHome, { recursive: true });
  });

  test.each(["full", "read-only"])(
    "with a %s cache directory, the run succeeds or is refused with the reason",
    async (how) => {
      const cache = await mkdtemp(path.join(tmpdir(), "slc-"));
      const real = cacheDirectory();
      const fill = how === "full" ? `dd if=/dev/zero of=${cache}/fill bs=64k 2>/dev/null; ` : "";
      const remount = how === "read-only" ? `mount -o remount,ro ${cache}; ` : "";
      const script = `mount -t tmpfs -o size=4m tmpfs ${cache} && ln -s ${real}/snapshots ${cache}/snapshots && ln -s ${real}/tools ${cache}/tools; ${fill}${remount}exec ${process.execPath} ${main} run - --driver ${driver}`;
      const { status, output } = await collect(["-m", "sh", "-c", script], { SLUICE_CACHE: cache }, "unshare", "print(6 * 7)");
      // bubblewrap stores nothing there. gVisor has no space for its memory image, which is a problem of the machine, not of the driver.
      const why = how === "full" ? "ENOSPC: no space left on device" : "EROFS: read-only file system";
      const refusal = `The memory image could not be written to ${cache}/images: ${why}`;
      expect([status, output]).toEqual(
        driver === "gvisor" ? [3, expect.stringContaining(refusal)] : [0, expect.stringContaining("\n42\n")],
      );
      await rm(cache, { recursive: true });
      // Without a cache, every sandbox of the self-test imports the stack itself, on a machine that may be busy.
    },
    240_000,
  );
});

/** Waits for the first processes of the sandbox that is being started, without the reaper. */
async function waitForEngine({ pid, runHome, child, output }: Host): Promise<number[]> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`ended before it started a sandbox: ${output()}`);
    const found = await listSandboxProcesses(pid, runHome);
    const executables = await Promise.all(found.map((one) => readlink(`/proc/${one}/exe`).catch(() => process.execPath)));
    const engine = found.filter((_, index) => executables[index] !== process.execPath);
    if (engine.length > 0) return engine;
    await wait(1);
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // it has already exited
  }
}

async function killSandboxes(hostPid: number): Promise<void> {
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const cgroup = await readFile(`/proc/${name}/cgroup`, "utf8").catch(() => "");
    if (!cgroup.includes(`sluice-${hostPid}-`)) continue;
    const executable = await readlink(`/proc/${name}/exe`).catch(() => "");
    if (executable === process.execPath || cgroup.includes("zygote")) continue;
    killQuietly(Number(name));
  }
}

/** Creates a cache that links to the real one's snapshots and has hard links to its memory images, so that these may be removed. */
async function linkCache(): Promise<string> {
  const real = cacheDirectory();
  const cache = await mkdtemp(path.join(real, "crash-"));
  for (const name of ["snapshots", "tools", "self-tests"]) await symlink(path.join(real, name), path.join(cache, name));
  await collect(["-al", path.join(real, "images"), path.join(cache, "images")], {}, "cp");
  return cache;
}

/** Creates a cache whose files are hard links to the real one's. They may be removed, but never written. */
async function copyCache(): Promise<string> {
  const real = cacheDirectory();
  const cache = await mkdtemp(path.join(real, "crash-"));
  const { id } = (await findSnapshot({ cacheDirectory: real }))!;
  await mkdir(path.join(cache, "snapshots"));
  await collect(["-al", path.join(real, "snapshots", id), path.join(cache, "snapshots", id)], {}, "cp");
  await symlink(path.join(real, "tools"), path.join(cache, "tools"));
  return cache;
}

async function collect(
  args: string[],
  environment: Record<string, string>,
  program: string = process.execPath,
  stdin = "",
): Promise<{ status: number; output: string }> {
  const child = spawn(program, args, { env: { ...process.env, ...environment }, stdio: ["pipe", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stdin.on("error", () => {}); // a program that has ended no longer reads; its status shows what happened
  child.stdin.end(stdin);
  const [status] = (await once(child, "close")) as [number];
  return { status, output };
}
