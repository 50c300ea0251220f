import { expect, it } from "vitest";
import { createGate } from "../../../sandbox/pool.ts";
import { createSpareSandboxes } from "./connection-registry.ts";
import type { McpConnection } from "./open-mcp-connection.ts";

/** Of a session, what gives way. */
function sessionThat(giveUpSandbox: () => Promise<void>): McpConnection {
  return { giveUpSandbox } as unknown as McpConnection;
}

it("asks one session after the other until who waits has a place, the one that rested longest first", async () => {
  const gate = createGate({ places: 1, deadlineMs: 60_000 });
  const leave = await gate.enter();
  const asked: string[] = [];
  const rested: (() => void)[] = [];
  using spare = createSpareSandboxes({ gate, after: (_ms, work) => (rested.push(work), () => {}), lifetimes: { spareMs: 1 } });
  spare.add(sessionThat(async () => void asked.push("holds none any more")));
  spare.add(sessionThat(async () => (asked.push("holds one"), leave())));
  spare.add(sessionThat(async () => void asked.push("is not needed")));
  for (const work of rested) work();
  expect(asked).toEqual([]);
  await gate.enter();
  expect(asked).toEqual(["holds none any more", "holds one"]);
});

it("leaves alone who runs a cell, and who has not rested long enough", async () => {
  const gate = createGate({ places: 1, deadlineMs: 60_000 });
  const leave = await gate.enter();
  const asked: string[] = [];
  const rested = new Set<() => void>();
  const after = (_ms: number, work: () => void): (() => void) => (rested.add(work), () => void rested.delete(work));
  using spare = createSpareSandboxes({ gate, after, lifetimes: { spareMs: 1 } });
  const runs = sessionThat(async () => void asked.push("runs a cell"));
  spare.add(runs);
  for (const work of rested) work();
  spare.remove(runs);
  const rests = sessionThat(async () => (asked.push("rested"), leave()));
  rested.clear();
  spare.add(rests);
  const entered = gate.enter();
  expect(asked).toEqual([]);
  for (const work of rested) work();
  await entered;
  expect(asked).toEqual(["rested"]);
});
