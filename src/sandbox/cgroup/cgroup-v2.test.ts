import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createVersion2 } from "./lease-cgroup.ts";
import { hostCgroupName } from "./cgroup-files.ts";

/** A directory of plain files instead of the kernel's, to test what is written and how files are parsed. */
function makeTree(): { parent: string; directory: string; read: (file: string) => string } {
  const parent = mkdtempSync(join(tmpdir(), "sluice-cgroup2-"));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  mkdirSync(join(parent, hostCgroupName()));
  const directory = join(parent, hostCgroupName(), "lease");
  return { parent, directory, read: (file) => readFileSync(join(directory, file), "utf8") };
}

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
