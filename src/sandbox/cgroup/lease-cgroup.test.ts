import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { currentProcess } from "../../processes.ts";
import { findCgroups, hostCgroupName, listHostCgroups, readControl, removeEmptyHostCgroups, removeHostCgroups } from "./host-cgroups.ts";
import { createLeaseCgroup, createVersion2, type LeaseCgroup } from "./lease-cgroup.ts";

const MB = 1024 * 1024;
const cgroups = await findCgroups();

/** Starts a program inside the cgroup as drivers do. */
function startInside(cgroup: LeaseCgroup, ...command: string[]) {
  const joinAndExec = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 125; shift; n=$((n-1)); done; exec "$@"';
  return spawn("/bin/sh", ["-c", joinAndExec, "sh", String(cgroup.joinPaths.length), ...cgroup.joinPaths, ...command], {
    stdio: ["ignore", "pipe", "pipe"],
  });
}

if (!cgroups.available) {
  test(`cgroups are not available here: ${cgroups.reason}`, () => {
    expect(cgroups.reason).toMatch(/\.$/);
  });
} else {
  const create = (name: string, limits: { memoryBytes?: number; processes?: number } = {}) =>
    createLeaseCgroup({ cgroups, name, memoryBytes: limits.memoryBytes ?? 256 * MB, processes: limits.processes ?? 16 });

  afterAll(() => removeEmptyHostCgroups(cgroups, currentProcess()));

  describe("a lease's cgroup", () => {
    test("shares one CPU weight below the host's with the other sandboxes, if the cpu controller is available", async () => {
      const cgroup = await create("share");
      const child = startInside(cgroup, "/bin/cat", "/proc/self/cgroup");
      const [output] = (await once(child.stdout, "data")) as [Buffer];
      const place = output
        .toString()
        .split("\n")
        .find((line) => (cgroups.version === 1 ? /^\d+:(.*,)?cpu(,.*)?:/ : /^0::/).test(line));
      const hasCpuController = cgroups.version === 2 || cgroups.parents.cpu !== undefined;
      expect(place?.endsWith(`/${hostCgroupName()}/share`)).toBe(hasCpuController);
      if (cgroups.version === 1 && hasCpuController)
        expect(readControl(`${cgroups.parents.cpu}/${hostCgroupName()}`, "cpu.shares")).toBe("256");
      await cgroup.remove();
    });

    test("measures memory and CPU time of its members", async () => {
      const cgroup = await create("meter");
      const child = startInside(cgroup, "/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=60M", "count=10");
      await once(child, "exit");
      const usage = await cgroup.usage();
      expect(usage.peakMemoryBytes).toBeGreaterThan(50 * MB);
      expect(usage.cpuMs).toBeGreaterThan(10);
      expect(usage.memoryKills).toBe(0);
      await cgroup.resetPeak();
      expect((await cgroup.usage()).peakMemoryBytes).toBeLessThan(50 * MB);
      await cgroup.remove();
      expect(cgroup.paths.filter((path) => existsSync(path))).toEqual([]);
    });

    test("kills and counts a process that goes over the memory limit", async () => {
      const cgroup = await create("bomb", { memoryBytes: 32 * MB });
      const child = startInside(cgroup, "/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1");
      const [, signal] = (await once(child, "exit")) as [number | null, string | null];
      expect(signal).toBe("SIGKILL");
      expect((await cgroup.usage()).memoryKills).toBe(1);
      await cgroup.remove();
    });

    test("refuses more processes than allowed", async () => {
      const cgroup = await create("forks", { processes: 4 });
      const child = startInside(cgroup, "/bin/sh", "-c", "for i in 1 2 3 4 5 6; do sleep 30 & done; wait");
      let stderr = "";
      child.stderr.on("data", (text: Buffer) => (stderr += text.toString()));
      while (!stderr.includes("fork")) await once(child.stderr, "data"); // the message may arrive in pieces
      await cgroup.kill();
      expect(stderr).toContain("fork");
      await cgroup.remove();
    });

    test("leaves no process after kill(), and remove() is idempotent", async () => {
      const cgroup = await create("kill", { processes: 64 });
      const child = startInside(cgroup, "/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; echo up; wait");
      await once(child.stdout, "data");
      const exited = once(child, "exit");
      await cgroup.kill();
      await exited;
      await cgroup.remove();
      await cgroup.remove();
      expect(cgroup.paths.filter((path) => existsSync(path))).toEqual([]);
    });

    test("is found by the identity of its host process, and removed with its members", async () => {
      const cgroup = await create("left-behind");
      const child = startInside(cgroup, "/bin/sh", "-c", "echo up; exec sleep 60");
      await once(child.stdout, "data");
      const exited = once(child, "exit");
      expect(await listHostCgroups(cgroups)).toContainEqual(currentProcess());
      await removeHostCgroups(cgroups, currentProcess());
      await exited;
      expect(await listHostCgroups(cgroups)).not.toContainEqual(currentProcess());
    });
  });

  test("a name that points outside of the tree is refused", async () => {
    await expect(create("../x")).rejects.toThrow('Invalid cgroup name: "../x"');
  });
}

/** A directory of plain files instead of the kernel's, to test what is written and how files are parsed. */
function makeTree(): { parent: string; directory: string; read: (file: string) => string } {
  const parent = mkdtempSync(join(tmpdir(), "sluice-cgroup2-"));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  mkdirSync(join(parent, hostCgroupName()));
  const directory = join(parent, hostCgroupName(), "lease");
  return { parent, directory, read: (file) => readFileSync(join(directory, file), "utf8") };
}

describe("a cgroup of version 2", () => {
  test("sets limits for memory, swap and processes, and tells the kernel to kill all members together", async () => {
    const { parent, read } = makeTree();
    const cgroup = await createVersion2({ parent, name: "lease", memoryBytes: 1000, processes: 7, killTogether: true });
    expect(readFileSync(join(parent, hostCgroupName(), "cgroup.subtree_control"), "utf8")).toBe("+memory +pids");
    expect(readFileSync(join(parent, hostCgroupName(), "cpu.weight"), "utf8")).toBe("25");
    expect([read("memory.max"), read("memory.swap.max"), read("pids.max"), read("memory.oom.group")]).toEqual(["1000", "0", "7", "1"]);
    expect(cgroup.joinPaths).toEqual([join(cgroup.paths[0]!, "cgroup.procs")]);
    await cgroup.kill();
    expect([read("cgroup.kill"), read("pids.max")]).toEqual(["1", "0"]);
  });

  test("reads CPU time and kills, and samples the memory peak where the kernel cannot reset its own", async () => {
    const { parent, directory } = makeTree();
    const cgroup = await createVersion2({ parent, name: "lease", memoryBytes: 1000, processes: 7 });
    writeFileSync(join(directory, "cpu.stat"), "usage_usec 1500\nuser_usec 1000\n");
    writeFileSync(join(directory, "memory.events"), "low 0\noom 3\noom_kill 2\n");
    writeFileSync(join(directory, "memory.current"), "900\n");
    expect(await cgroup.usage()).toEqual({ peakMemoryBytes: 900, cpuMs: 1.5, memoryKills: 2 });
    writeFileSync(join(directory, "memory.current"), "300\n");
    expect((await cgroup.usage()).peakMemoryBytes).toBe(900);
    await cgroup.resetPeak();
    expect((await cgroup.usage()).peakMemoryBytes).toBe(300);
  });
});
