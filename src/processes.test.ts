import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { killAll, listProcessTree, readStartTime } from "./processes.ts";

test("killAll kills a process and all its descendants", async () => {
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
