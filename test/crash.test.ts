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

/** Processes that belong to sandboxes of this host process: they are in its cgroups, or carry its run directory in their arguments. */
async function processesOf(hostPid: number, runHome: string): Promise<number[]> {
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

async function cgroupsOf(hostPid: number): Promise<string[]> {
  const found: string[] = [];
  for (const top of ["/sys/fs/cgroup", ...(await readdir("/sys/fs/cgroup")).map((name) => `/sys/fs/cgroup/${name}`)]) {
    const names = await readdir(top).catch(() => []);
    found.push(...names.filter((name) => name.startsWith(`sluice-${hostPid}-`)).map((name) => `${top}/${name}`));
  }
  return found;
}

async function leftOf(hostPid: number, runHome: string): Promise<unknown> {
  const mounts = (await readFile("/proc/self/mounts", "utf8")).split("\n").filter((line) => line.includes(runHome));
  const entries = await readdir(runHome, { recursive: true }).catch(() => [] as string[]);
  const directories = entries.filter((entry) => entry.split("/").length > 1);
  return { processes: await processesOf(hostPid, runHome), cgroups: await cgroupsOf(hostPid), mounts, directories };
}

const nothing = { processes: [], cgroups: [], mounts: [], directories: [] };

/** Polls for at most 5 s, the time that nothing may stay behind for. */
async function expectNothingLeft(hostPid: number, runHome: string): Promise<void> {
  const deadline = performance.now() + 5_000;
  let left = await leftOf(hostPid, runHome);
  while (JSON.stringify(left) !== JSON.stringify(nothing) && performance.now() < deadline) {
    await wait(50);
    left = await leftOf(hostPid, runHome);
  }
  expect(left).toEqual(nothing);
}

interface Host {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly runHome: string;
  readonly output: () => string;
  /** Resolves when standard output or error has shown the text. */
  shown(text: string): Promise<void>;
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
  const shown = async (text: string): Promise<void> =>
    await new Promise((resolve, reject) => {
      const look = (): void => {
        if (output.includes(text)) resolve();
      };
      watchers.push(look);
      child.once("exit", () => reject(new Error(`ended before it showed ${text}: ${output}`)));
      look();
    });
  return { child, pid: child.pid!, runHome, output: () => output, shown };
}

describe.each(testedDrivers)("crashes on %s", (driver) => {
  let runtime: Runtime;
  beforeAll(() => {
    runtime = openTestRuntime(driver);
  });
  afterAll(async () => await runtime.close(), 60_000);

  const endless = "import time\nprint('running', flush=True)\nwhile True: time.sleep(0.01)";

  test("kill -9 of the host while a cell runs leaves nothing after 5 s", async () => {
    const host = await startHost(driver, endless);
    await host.shown("running");
    expect((await processesOf(host.pid, host.runHome)).length).toBeGreaterThan(0);
    host.child.kill("SIGKILL");
    await once(host.child, "exit");
    await expectNothingLeft(host.pid, host.runHome);
    await rm(host.runHome, { recursive: true });
  });

  test.each(["starting", "warm", "shipping", "idle", "closing"])(
    "kill -9 of the host in the phase %s leaves nothing after 5 s",
    async (phase) => {
      const host = await startProgram([path.resolve(import.meta.dirname, "fixtures/phase-host.ts"), driver, phase]);
      await host.shown(phase);
      if (phase === "starting") await firstProcessOf(host);
      host.child.kill("SIGKILL");
      await once(host.child, "exit");
      await expectNothingLeft(host.pid, host.runHome);
      await rm(host.runHome, { recursive: true });
    },
    60_000,
  );

  test("kill -9 of the engine while the sandbox starts is told, or another one is started, and nothing is left", async () => {
    const cache = await linkCache(); // gVisor takes the memory image for damaged, and makes another
    const host = await startHost(driver, "print(6 * 7)", { SLUICE_CACHE: cache });
    for (const pid of await firstProcessOf(host)) killQuietly(pid);
    const [status] = (await once(host.child, "close")) as [number];
    const told = /^sluice: The (bubblewrap|gVisor) .*(could not start a sandbox|did not start).* SIGKILL/m;
    if (status === 0) expect(host.output()).toContain("\n42\n");
    else expect([status, host.output()]).toEqual([3, expect.stringMatching(told)]);
    await expectNothingLeft(host.pid, host.runHome);
    await rm(cache, { recursive: true });
    await rm(host.runHome, { recursive: true });
  }, 180_000);

  test("Ctrl-C ends the cell, cleans up and says so", async () => {
    const host = await startHost(driver, endless);
    await host.shown("running");
    host.child.kill("SIGINT");
    const [status] = (await once(host.child, "exit")) as [number];
    expect(status).toBe(130);
    expect(host.output()).toContain("interrupted; the cell was ended and nothing is left behind");
    await expectNothingLeft(host.pid, host.runHome);
    await rm(host.runHome, { recursive: true });
  });

  test("a run that ended in order leaves nothing", async () => {
    const host = await startHost(driver, "1 + 1");
    const [status] = (await once(host.child, "exit")) as [number];
    expect([status, host.output()]).toEqual([0, expect.stringContaining("\n2\n")]);
    await expectNothingLeft(host.pid, host.runHome);
    await rm(host.runHome, { recursive: true });
  });

  test("kill -9 of every process of the sandbox is told as a lost sandbox, and the next cell works", async () => {
    await using session = await runtime.openCellSession();
    expect((await session.run({ code: "kept = 5" })).status).toBe("ok");
    const outcome = await session.run({ code: endless, onOutput: () => void killSandboxes(process.pid) });
    expect(outcome).toMatchObject({
      status: expect.stringMatching(/^(sandbox_lost|crashed)$/),
      error: { message: expect.stringMatching(/gone|died|ended/) },
    });
    const next = await session.run({ code: "globals().get('kept')" });
    expect(next.status).toBe("ok");
    const kept = next.resultJson === null ? null : (JSON.parse(next.resultJson) as unknown);
    const told = next.diagnostics["sandboxReplaced"] as { variables: string } | undefined;
    expect(told?.variables === "lost" ? null : 5, "what it says of the variables is true").toBe(kept);
  });

  test("kill -9 of the sandbox while an input goes to it is told, and the next call has a new one", async () => {
    await using session = await runtime.openCellSession();
    expect((await session.run({ code: "kept = 5" })).status).toBe("ok");
    session.bind("big", { format: "bytes", bytes: Buffer.alloc(200 * 1024 * 1024, 1) });
    const running = session.run({ code: "len(big)" });
    await Promise.all([
      killSandboxes(process.pid),
      expect(running).rejects.toMatchObject({
        code: "SANDBOX_LOST",
        message: "The sandbox ended while it received the input big. The cell was not run.",
      }),
    ]);
    expect(await session.run({ code: "[kept, len(big)]" })).toMatchObject({
      status: "ok",
      resultJson: `[5,${200 * 1024 * 1024}]`,
      diagnostics: { sandboxReplaced: { variables: "replayed", cells: 1 } },
    });
  });

  test("kill -9 of an idle sandbox is noticed, and what became of the variables is told", async () => {
    await using session = await runtime.openCellSession();
    await session.run({ code: "kept = 5" });
    await killSandboxes(process.pid);
    const next = await session.run({ code: "globals().get('kept')" });
    const after = next.status === "ok" ? next : await session.run({ code: "globals().get('kept')" });
    expect(after.status).toBe("ok");
    const told = [next, after]
      .map((outcome) => outcome.diagnostics["sandboxReplaced"] as { variables: string } | undefined)
      .find((found) => found !== undefined);
    expect(told).toBeDefined();
    expect(after.resultJson === null ? null : JSON.parse(after.resultJson)).toBe(told!.variables === "lost" ? null : 5);
  });

  test("a damaged snapshot is refused with what to do, and verify names the file", async () => {
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
    "a cache directory that is %s gives a run, or a refusal that says why",
    async (how) => {
      const cache = await mkdtemp(path.join(tmpdir(), "slc-"));
      const real = cacheDirectory();
      const fill = how === "full" ? `dd if=/dev/zero of=${cache}/fill bs=64k 2>/dev/null; ` : "";
      const remount = how === "read-only" ? `mount -o remount,ro ${cache}; ` : "";
      const script = `mount -t tmpfs -o size=4m tmpfs ${cache} && ln -s ${real}/snapshots ${cache}/snapshots && ln -s ${real}/tools ${cache}/tools; ${fill}${remount}exec ${process.execPath} ${main} run - --driver ${driver}`;
      const { status, output } = await collect(["-m", "sh", "-c", script], { SLUICE_CACHE: cache }, "unshare", "print(6 * 7)");
      // bubblewrap keeps nothing there; gVisor's memory image has no place, which is a matter of the machine and not of the driver.
      const why = how === "full" ? "ENOSPC: no space left on device" : "EROFS: read-only file system";
      const refusal = `The memory image could not be written to ${cache}/images: ${why}`;
      expect([status, output]).toEqual(
        driver === "gvisor" ? [3, expect.stringContaining(refusal)] : [0, expect.stringContaining("\n42\n")],
      );
      await rm(cache, { recursive: true });
      // Without a cache every sandbox of the self-test imports the stack anew, on a machine that may be busy.
    },
    240_000,
  );
});

/** The processes of the sandbox that is being started, as soon as there is one; never the reaper, which is no part of it. */
async function firstProcessOf({ pid, runHome, child, output }: Host): Promise<number[]> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`ended before it started a sandbox: ${output()}`);
    const found = await processesOf(pid, runHome);
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
    // it ended by itself
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

/** A cache of its own with the real one's snapshots, and its memory images by hard links: they may be removed. */
async function linkCache(): Promise<string> {
  const real = cacheDirectory();
  const cache = await mkdtemp(path.join(real, "crash-"));
  for (const name of ["snapshots", "tools", "self-tests"]) await symlink(path.join(real, name), path.join(cache, name));
  await collect(["-al", path.join(real, "images"), path.join(cache, "images")], {}, "cp");
  return cache;
}

/** A cache of its own that shares every file with the real one by hard links; files may be removed from it, never written. */
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
  child.stdin.on("error", () => {}); // a program that has ended does not read any more; its status says what happened
  child.stdin.end(stdin);
  const [status] = (await once(child, "close")) as [number];
  return { status, output };
}
