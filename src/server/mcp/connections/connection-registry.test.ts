import { expect, it } from "vitest";
import { createGate } from "../../../sandbox/pool.ts";
import { createSandboxReclaimer } from "./connection-registry.ts";
import type { McpConnection } from "./mcp-connection.ts";

/** Only the method that the reclaimer calls. */
function connectionThat(releaseIdleSandbox: () => Promise<void>): McpConnection {
  return { releaseIdleSandbox } as unknown as McpConnection;
}

it("releases sandboxes until the waiting call has a place, the longest idle connection first", async () => {
  const gate = createGate({ places: 1, deadlineMs: 60_000 });
  const leave = await gate.enter();
  const released: string[] = [];
  const timers: (() => void)[] = [];
  using reclaimer = createSandboxReclaimer({ gate, after: (_ms, work) => (timers.push(work), () => {}), lifetimes: { reclaimAfterMs: 1 } });
  reclaimer.add(connectionThat(async () => void released.push("holds none")));
  reclaimer.add(connectionThat(async () => (released.push("holds one"), leave())));
  reclaimer.add(connectionThat(async () => void released.push("is not needed")));
  for (const work of timers) work();
  expect(released).toEqual([]);
  await gate.enter();
  expect(released).toEqual(["holds none", "holds one"]);
});

it("does not release a sandbox that runs a cell or was idle for too short a time", async () => {
  const gate = createGate({ places: 1, deadlineMs: 60_000 });
  const leave = await gate.enter();
  const released: string[] = [];
  const timers = new Set<() => void>();
  const after = (_ms: number, work: () => void): (() => void) => (timers.add(work), () => void timers.delete(work));
  using reclaimer = createSandboxReclaimer({ gate, after, lifetimes: { reclaimAfterMs: 1 } });
  const busy = connectionThat(async () => void released.push("runs a cell"));
  reclaimer.add(busy);
  for (const work of timers) work();
  reclaimer.remove(busy);
  const idle = connectionThat(async () => (released.push("idle"), leave()));
  timers.clear();
  reclaimer.add(idle);
  const entered = gate.enter();
  expect(released).toEqual([]);
  for (const work of timers) work();
  await entered;
  expect(released).toEqual(["idle"]);
});
