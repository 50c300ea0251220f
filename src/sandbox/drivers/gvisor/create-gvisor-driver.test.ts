import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { cacheDirectory } from "../../../config/environment.ts";
import { findSnapshot } from "../../snapshot/find-snapshot.ts";
import type { Lease, SandboxDriver, SandboxLimits, Snapshot } from "../../contract.ts";
import { withLimits } from "../../limits.ts";
import { findProcessesByArgument } from "../../../processes.ts";
import { openRunDirectory, type RunDirectory } from "../../run-directory.ts";
import { describeAge, findRunsc, toReleaseDate, type Runsc } from "./runsc.ts";
import { createGvisorDriver } from "./create-gvisor-driver.ts";
import { toOciSpec } from "./oci-spec.ts";

const MB = 1024 * 1024;
const realCache = cacheDirectory();
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

let snapshot: Snapshot;
let light: Snapshot;
let runsc: Runsc;
let runDirectory: RunDirectory;
let driver: SandboxDriver;

beforeAll(async () => {
  const [foundSnapshot, foundRunsc] = await Promise.all([
    findSnapshot({ cacheDirectory: realCache }),
    findRunsc({ searchPath: SYSTEM_PATH, cacheDirectory: realCache }),
  ]);
  if (foundSnapshot === null || foundRunsc === null) throw new Error("The snapshot or runsc is missing: run `npm run setup`.");
  [snapshot, runsc] = [foundSnapshot, foundRunsc];
  light = makeLightSnapshot(snapshot);
  runDirectory = await openRunDirectory();
  driver = createGvisorDriver({ cacheDirectory: realCache, runDirectory });
  await driver.prepare({ snapshot });
}, 180_000);

afterAll(async () => {
  await driver?.[Symbol.asyncDispose]();
  await runDirectory?.close();
  if (light !== undefined) rmSync(join(light.rootfs, ".."), { recursive: true, force: true });
}, 60_000);

/**
 * The same Python without the stack, with a minimal worker, so that its memory image is saved in a second. It is next to the snapshot, so that files can
 * be hard links.
 */
function makeLightSnapshot({ rootfs }: Snapshot): Snapshot {
  const directory = mkdtempSync(join(realCache, "light-test-snapshot-"));
  const copy = join(directory, "rootfs");
  const packages = join(copy, "usr/local/lib/python3.13/dist-packages");
  execFileSync("cp", ["-al", rootfs, copy]);
  rmSync(packages, { recursive: true });
  mkdirSync(join(packages, "sluice_worker"), { recursive: true });
  for (const name of ["__init__.py", "frames.py"])
    copyFileSync(join(rootfs, "usr/local/lib/python3.13/dist-packages/sluice_worker", name), join(packages, "sluice_worker", name));
  copyFileSync(join(import.meta.dirname, "fixtures", "light-worker.py"), join(packages, "sluice_worker", "__main__.py"));
  return { id: `light-${process.pid}`, rootfs: copy };
}

async function open(limits: Partial<SandboxLimits> = {}, from: SandboxDriver = driver, rootSnapshot: Snapshot = snapshot): Promise<Lease> {
  const lease = await from.open({ snapshot: rootSnapshot, limits: withLimits(limits), networkPolicy: "deny-all" });
  onTestFinished(() => lease.close());
  return lease;
}

/** Runs code and returns the header and body of the last frame. Null when the sandbox died. */
async function run(lease: Lease, code: string): Promise<{ header: Readonly<Record<string, unknown>>; result: string } | null> {
  const limits = { ...withLimits({ artifacts: 1 }), turnArtifactBytesUsed: 0 };
  await lease.channel.send({ type: "cell", cell: 1, rollback: "none", names: {}, limits }, Buffer.from(code));
  for (;;) {
    const frame = await lease.channel.receive().catch(() => null);
    if (frame === null) return null;
    if (frame.header.type !== "output") return { header: frame.header, result: Buffer.from(frame.body).toString() };
  }
}

/** Counts everything that exists of this driver's sandboxes on the host. */
async function countRemains(directory: RunDirectory = runDirectory): Promise<Record<string, number>> {
  const { cgroups } = directory;
  const parent = cgroups.available ? (cgroups.version === 1 ? cgroups.parents.memory : cgroups.parent) : null;
  const host = parent === null ? undefined : readdirSync(parent).find((name) => name.startsWith(`sluice-${process.pid}-`));
  return {
    processes: (await findProcessesByArgument(`--root=${directory.runscState}`)).length,
    cgroups:
      host === undefined ? 0 : readdirSync(join(parent!, host), { withFileTypes: true }).filter((entry) => entry.isDirectory()).length,
    directories: readdirSync(join(directory.path, "leases")).length,
    state: readdirSync(directory.runscState).length,
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.includes(directory.path)).length,
  };
}
const nothingLeft = { processes: 0, cgroups: 0, directories: 0, state: 0, mounts: 0 };

function makeCache(): string {
  const cache = mkdtempSync(join(tmpdir(), "sluice-cache-"));
  onTestFinished(() => rmSync(cache, { recursive: true, force: true }));
  return cache;
}

function createOther(options: { cacheDirectory?: string; runscPath?: string; rootless?: boolean } = {}): SandboxDriver {
  const other = createGvisorDriver({ cacheDirectory: realCache, runscPath: runsc.path, runDirectory, ...options });
  onTestFinished(() => other[Symbol.asyncDispose]());
  return other;
}

describe("preflight", () => {
  test("names runsc, its version and its age", async () => {
    expect(await driver.preflight()).toMatchObject({ usable: true, version: `runsc ${runsc.version} (${describeAge(runsc)})` });
  });

  test("returns a fix when runsc is missing or does not run", async () => {
    const missing = createOther({ runscPath: "/nonexistent/runsc" });
    expect(await missing.preflight()).toEqual({
      usable: false,
      reason: "gVisor's program runsc was not found.",
      fix: "Run `sluice prepare`, which extracts it from Debian's packages, or install gVisor so that runsc is on PATH.",
    });
    await expect(missing.open({ snapshot, limits: withLimits({}), networkPolicy: "deny-all" })).rejects.toMatchObject({
      name: "NoSandboxError",
      code: "RUNSC_MISSING",
    });
    expect(await createOther({ runscPath: "/bin/false" }).preflight()).toMatchObject({
      usable: false,
      reason: expect.stringContaining("runsc does not run on this machine"),
    });
  });

  test("names the rootless mode differently and lists what it lacks", async () => {
    const rootless = createOther({ rootless: true });
    expect(rootless.name).toBe("gvisor-rootless");
    const found = await rootless.preflight();
    expect(found.usable && found.notes.join(" ")).toContain("run as the user who started Sluice");
  });
});

test("the release date is parsed from both version formats", () => {
  expect(toReleaseDate("release-20260817.0")?.toISOString()).toBe("2026-08-17T00:00:00.000Z");
  expect(toReleaseDate("0.0~20240729.0")?.toISOString()).toBe("2024-07-29T00:00:00.000Z");
  expect(toReleaseDate("unknown")).toBeNull();
  expect(describeAge({ path: "", version: "", releasedAt: new Date("2026-08-17") }, new Date("2026-11-15"))).toBe(
    "released 2026-08-17, 3 months ago",
  );
});

test("the spec gives the worker no capabilities, no writable root and no way to gain them", () => {
  const { root, process: worker, mounts, linux } = toOciSpec({ rootfs: "/r", scratchBytes: 1000 });
  expect(root).toEqual({ path: "/r", readonly: true });
  expect(worker).toMatchObject({
    noNewPrivileges: true,
    user: { uid: 1000, gid: 1000, additionalGids: [] },
    capabilities: { bounding: [], effective: [], inheritable: [], permitted: [], ambient: [] },
  });
  expect(mounts.map((mount) => mount.type).sort()).toEqual(["proc", "sysfs", "tmpfs", "tmpfs", "tmpfs", "tmpfs"]); // no directory of the host is mounted
  expect(linux["seccomp"]).toMatchObject({ defaultAction: "SCMP_ACT_ERRNO" });
});

describe("a sandbox's processes", { timeout: 30_000 }, () => {
  test.runIf(process.getuid!() === 0)("include a sentry that runs as nobody, without capabilities and without a network", async () => {
    await open();
    const pids = await findProcessesByArgument(`--root=${runDirectory.runscState}`);
    const sentry = pids.find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith("runsc-sandbox"))!;
    const status = readFileSync(`/proc/${sentry}/status`, "utf8");
    expect(/^Uid:\s+(\d+)/m.exec(status)?.[1]).not.toBe("0");
    expect(/^CapEff:\s+(\w+)/m.exec(status)?.[1]).toBe("0000000000000000");
    expect(/^Seccomp:\s+(\d)/m.exec(status)?.[1]).toBe("2");
    const interfaces = readFileSync(`/proc/${sentry}/net/dev`, "utf8")
      .split("\n")
      .slice(2)
      .map((line) => line.split(":")[0]!.trim())
      .filter((name) => name !== "" && name !== "lo");
    expect(interfaces).toEqual([]);
  });

  test(
    "leave nothing behind after close, whether the sandbox was idle or running, twenty times in a row",
    { timeout: 120_000 },
    async () => {
      for (let round = 0; round < 20; round++) {
        const lease = await driver.open({ snapshot, limits: withLimits({}), networkPolicy: "deny-all" });
        if (round % 2 === 1) void run(lease, "while True: pass");
        await lease.close();
        expect((await countRemains()).processes).toBe(0);
      }
      await vi.waitFor(async () => expect(await countRemains()).toEqual(nothingLeft), { timeout: 10_000 });
    },
  );

  test("leave nothing behind when opening is aborted at any moment", { timeout: 120_000 }, async () => {
    for (const afterMs of [0, 5, 20, 60, 120, 200, 300]) {
      const stop = new AbortController();
      const opening = driver.open({ snapshot, limits: withLimits({}), networkPolicy: "deny-all", signal: stop.signal });
      setTimeout(() => stop.abort(new Error("changed my mind")), afterMs);
      await opening.then(
        (lease) => lease.close(),
        (error: Error) => expect(error).toMatchObject({ name: "NoSandboxError", code: "OPEN_ABORTED" }),
      );
    }
    await vi.waitFor(async () => expect(await countRemains()).toEqual(nothingLeft), { timeout: 10_000 });
  });
});

describe("a sandbox that dies", { timeout: 60_000 }, () => {
  async function pidOf(name: string): Promise<number> {
    const pids = await findProcessesByArgument(`--root=${runDirectory.runscState}`);
    return pids.find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[0]!.endsWith(name))!;
  }

  test.each(["runsc-sandbox", "runsc-gofer", "runsc"])("reports it when %s is killed, and leaves nothing behind", async (name) => {
    const lease = await open();
    process.kill(await pidOf(name), "SIGKILL");
    if (name === "runsc-gofer") void run(lease, "import os; os.listdir('/usr/share')"); // the sentry notices it when it needs the gofer
    const death = await lease.died;
    expect(["killed", "exited"]).toContain(death.cause);
    expect(await lease.channel.receive()).toBeNull();
    await vi.waitFor(async () => expect(await countRemains()).toEqual(nothingLeft), { timeout: 10_000 });
  });

  test("reports a worker that was killed from inside", async () => {
    const lease = await open();
    expect(await run(lease, "import os; os.kill(1, 9)")).toBeNull();
    expect(await lease.died).toMatchObject({ cause: "killed", signal: "SIGKILL" });
  });

  test.each([
    ["a list", "held = []\nwhile True: held.append(bytearray(1 << 20))"],
    ["numpy", "import numpy\nheld = [numpy.ones(10_000_000) for _ in range(20)]"],
    [
      "shared memory",
      "import mmap\nheld = []\nwhile True:\n    held.append(mmap.mmap(-1, 1 << 26))\n    for i in range(0, 1 << 26, 4096): held[-1][i] = 1",
    ],
    [
      "files in scratch and /tmp",
      "held = bytearray(200 << 20)\nfor place, mb in (('/sandbox/x', 370), ('/tmp/x', 60), ('/dev/shm/x', 60)):\n    with open(place, 'wb') as f:\n        for _ in range(mb): f.write(bytes(1 << 20))\nimport time; time.sleep(30)",
    ],
    [
      "children",
      "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        held = bytearray(150 << 20); time.sleep(30)\ntime.sleep(30)",
    ],
  ])("reports out_of_memory promptly for %s", async (_, code) => {
    const lease = await open({ memoryBytes: 512 * MB });
    const ended = await run(lease, code);
    if (ended !== null) {
      expect(ended.header["status"]).toBe("memory_error");
      return;
    }
    expect(await lease.died).toMatchObject({ cause: "out_of_memory" });
    const usage = await lease.usage();
    expect(usage.memoryKills).toBeGreaterThan(0); // the kernel may kill more than one process
    expect(usage.peakMemoryBytes).toBeGreaterThan(500 * MB);
  });

  test("survives a single allocation over the limit, which is a MemoryError", async () => {
    const lease = await open({ memoryBytes: 512 * MB });
    expect((await run(lease, "bytearray(1 << 30)"))?.header["status"]).toBe("memory_error");
    expect((await run(lease, "set_result(1)"))?.result).toBe("1");
  });
});

/** Overwrites `bytes` bytes in the middle of the file. */
function overwrite(file: string, bytes: number): void {
  const fd = openSync(file, "r+");
  writeSync(fd, Buffer.alloc(bytes, 7), 0, bytes, Math.floor(statSync(file).size / 2));
  closeSync(fd);
}

/** Overwrites half of the file without changing its times, like a broken disk. */
function corruptSilently(file: string): void {
  const { atime, mtime, size } = statSync(file);
  overwrite(file, Math.floor(size / 2));
  utimesSync(file, atime, mtime);
}

describe("the memory image", { timeout: 120_000 }, () => {
  const listImages = (cache: string): string[] => (existsSync(join(cache, "images")) ? readdirSync(join(cache, "images")) : []);

  test("is saved once, even by concurrent drivers, and no other files are left", async () => {
    const cache = makeCache();
    const [one, two] = [createOther({ cacheDirectory: cache }), createOther({ cacheDirectory: cache })];
    await Promise.all([one.prepare({ snapshot: light }), one.prepare({ snapshot: light }), two.prepare({ snapshot: light })]);
    expect(listImages(cache)).toHaveLength(1);
    expect((await open({}, two, light)).start).toBe("restored");
  });

  test.each([
    ["truncated", (path: string) => truncateSync(join(path, "pages.img"), 4096)],
    ["modified", (path: string) => overwrite(join(path, "pages.img"), 1)],
    ["unusable for runsc", (path: string) => corruptSilently(join(path, "checkpoint.img"))],
    ["without its metadata", (path: string) => rmSync(join(path, "meta.json"))],
  ])("is built again when it is %s", async (_, damage) => {
    const cache = makeCache();
    await createOther({ cacheDirectory: cache }).prepare({ snapshot: light });
    expect(listImages(cache)).toHaveLength(1);
    const [image] = listImages(cache).map((name) => join(cache, "images", name));
    const readCreatedAt = (): string => (JSON.parse(readFileSync(join(image!, "meta.json"), "utf8")) as { createdAt: string }).createdAt;
    const first = readCreatedAt();
    damage(image!);
    const lease = await open({}, createOther({ cacheDirectory: cache }), light);
    expect(lease.start).toBe("restored");
    expect(readCreatedAt()).not.toBe(first);
    expect((await run(lease, "set_result(6 * 7)"))?.result).toBe("42");
  });

  test("that cannot be written is an error with its path", async () => {
    const cache = makeCache();
    writeFileSync(join(cache, "images"), "in the way");
    await expect(open({}, createOther({ cacheDirectory: cache }), light)).rejects.toMatchObject({
      name: "NoSandboxError",
      code: "MEMORY_IMAGE",
      message: expect.stringContaining(join(cache, "images")),
    });
  });

  test("is skipped when runsc cannot checkpoint: sandboxes start cold, and preflight adds a note", async () => {
    const cache = makeCache();
    const program = join(cache, "runsc-without-checkpoint");
    writeFileSync(
      program,
      `#!/bin/sh\nfor word; do [ "$word" = checkpoint ] && { echo "not supported" >&2; exit 1; }; done\nexec ${runsc.path} "$@"\n`,
      { mode: 0o755 },
    );
    const other = createOther({ cacheDirectory: cache, runscPath: program });
    const lease = await open({}, other, light);
    expect(lease.start).toBe("cold");
    expect((await run(lease, "set_result(1)"))?.result).toBe("1");
    const found = await other.preflight();
    expect(found.usable && found.notes.join(" ")).toContain("Checkpoints do not work on this machine");
  });

  test("cannot be saved for a damaged snapshot, and the error names the missing program", async () => {
    const rootfs = mkdtempSync(join(tmpdir(), "sluice-rootfs-"));
    chmodSync(rootfs, 0o755);
    onTestFinished(() => rmSync(rootfs, { recursive: true, force: true }));
    for (const name of ["proc", "sys", "dev", "tmp", "sandbox", "usr"]) mkdirSync(join(rootfs, name));
    symlinkSync("usr/bin", join(rootfs, "bin"));
    const other = createOther({ cacheDirectory: makeCache() });
    const opening = other.open({ snapshot: { id: "broken", rootfs }, limits: withLimits({}), networkPolicy: "deny-all" });
    await expect(opening).rejects.toMatchObject({
      name: "NoSandboxError",
      code: "GVISOR_START",
      message: expect.stringContaining("python3"),
    });
    await vi.waitFor(async () => expect(await countRemains()).toEqual(nothingLeft), { timeout: 10_000 });
  });
});

describe("without root and cgroups", { timeout: 60_000 }, () => {
  function createRootless(): SandboxDriver {
    const cgroups = { available: false, reason: "This test uses no cgroups." } as const;
    const rootless = createGvisorDriver({
      cacheDirectory: makeCache(),
      runscPath: runsc.path,
      runDirectory: { ...runDirectory, cgroups },
      rootless: true,
    });
    onTestFinished(() => rootless[Symbol.asyncDispose]());
    return rootless;
  }

  test("a sandbox is restored, measured, and removed on close", async () => {
    const rootless = createRootless();
    const lease = await open({}, rootless, light);
    expect([lease.driver, lease.start]).toEqual(["gvisor-rootless", "restored"]);
    expect((await run(lease, "held = bytearray(100 << 20); set_result(len(held))"))?.result).toBe(String(100 << 20));
    expect((await lease.usage()).peakMemoryBytes).toBeGreaterThan(20 * MB);
    expect((await lease.usage()).cpuMs).toBeGreaterThan(0);
    await lease.close();
    expect(await lease.died).toMatchObject({ cause: "closed" });
    await vi.waitFor(async () => expect(await countRemains()).toEqual(nothingLeft), { timeout: 10_000 });
  });

  test.each([
    ["its variables", "held = []\nwhile True: held.append(b'x' * (1 << 20))"],
    [
      "files in memory",
      "with open('/sandbox/x', 'wb') as f:\n    for _ in range(370): f.write(bytes(1 << 20))\nimport time; time.sleep(30)",
    ],
  ])("a sandbox whose memory limit is exceeded by %s is killed, and the cause is reported", async (_, code) => {
    const lease = await open({ memoryBytes: 200 * MB }, createRootless(), light);
    expect(await run(lease, code)).toBeNull();
    expect(await lease.died).toMatchObject({ cause: "out_of_memory" });
    expect((await lease.usage()).memoryKills).toBeGreaterThan(0);
  });
});

describe("when the host dies by SIGKILL", { timeout: 120_000 }, () => {
  test.each(["while it saves an image", "with open sandboxes"])("%s, nothing is left after 5 s", async (moment) => {
    const cache = moment === "with open sandboxes" ? realCache : makeCache();
    const host = spawn(
      process.execPath,
      ["--no-warnings", join(import.meta.dirname, "fixtures", "gvisor-host.ts"), cache, runsc.path, snapshot.id, snapshot.rootfs],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    const lines: string[] = [];
    host.stdout.setEncoding("utf8").on("data", (text: string) => lines.push(...text.split("\n").filter(Boolean)));
    await vi.waitFor(() => expect(lines.length).toBeGreaterThan(moment === "with open sandboxes" ? 1 : 0), {
      timeout: 60_000,
      interval: 20,
    });
    const directory = lines[0]!;
    const argument = `--root=${join(directory, "runsc")}`;
    await vi.waitFor(async () => expect((await findProcessesByArgument(argument)).length).toBeGreaterThan(0), {
      timeout: 10_000,
      interval: 20,
    });
    const exited = once(host, "exit");
    host.kill("SIGKILL");
    await exited;
    await vi.waitFor(
      async () => {
        expect(await findProcessesByArgument(argument)).toEqual([]);
        expect(existsSync(directory)).toBe(false);
        expect(listUnfinishedImages(cache)).toEqual([]);
        expect(listCgroups(host.pid!)).toEqual([]);
      },
      { timeout: 5_000, interval: 50 },
    );
  });
});

const listUnfinishedImages = (cache: string): string[] =>
  existsSync(join(cache, "images")) ? readdirSync(join(cache, "images")).filter((name) => name.startsWith(".")) : [];

function listCgroups(pid: number): string[] {
  const { cgroups } = runDirectory;
  if (!cgroups.available) return [];
  const parents = cgroups.version === 1 ? Object.values(cgroups.parents) : [cgroups.parent];
  return parents.flatMap((parent) => readdirSync(parent)).filter((name) => name.startsWith(`sluice-${pid}-`));
}
