import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createArtifactChecker } from "../src/artifacts/create-artifact-checker.ts";
import type { Runtime } from "../src/create-runtime.ts";
import { openCellSession } from "../src/cells/open-cell-session.ts";
import type { Lease, SandboxDriver } from "../src/sandbox/contract.ts";
import { SandboxPool, type TakenLease } from "../src/sandbox/pool.ts";
import { withLimits } from "../src/sandbox/limits.ts";
import { openTestRuntime, testedDrivers } from "./test-runtime.ts";

describe.each(testedDrivers)("the warm pool on %s", (driver) => {
  let runtime: Runtime;
  beforeAll(async () => {
    runtime = openTestRuntime(driver, { poolSize: 1, maxSandboxes: 3, queueDeadlineMs: 300 });
    await (await runtime.pool()).filled();
  }, 180_000);
  afterAll(async () => await runtime.close(), 60_000);

  test("gives a warm sandbox to the first call and refills in the background", async () => {
    const pool = await runtime.pool();
    expect(pool.warm).toBe(1);
    await using cellSession = await runtime.openCellSession();
    expect((await cellSession.run({ code: "1" })).sandbox.start).toBe("pool");
    await pool.filled();
    expect(pool.warm).toBe(1);
  });

  test("limits the number of all sandboxes, and a caller that waits too long gets an error with that number", async () => {
    const pool = await runtime.pool();
    await pool.filled();
    const taken = [];
    for (let count = 0; count < 3; count += 1) {
      taken.push(await pool.take({}));
      await pool.filled(); // warm sandboxes count too
    }
    expect(runtime.gate.taken).toBe(3);
    await expect(pool.take({})).rejects.toMatchObject({ code: "SANDBOX_QUEUE_TIMEOUT", details: { maxSandboxes: 3 } });
    await Promise.all(taken.map(({ lease }) => lease.close()));
  });

  test("never serves a call with other limits from the pool", async () => {
    await (await runtime.pool()).filled();
    await using cellSession = await runtime.openCellSession({ limits: withLimits({ memoryBytes: 700 * 1024 * 1024 }) });
    const outcome = await cellSession.run({ code: "2" });
    expect([outcome.status, outcome.sandbox.start]).toEqual(["ok", driver === "gvisor" ? "restored" : "forked"]);
  });

  test("a lease that reaches its time limit is closed, and the next cell reports what happened to the variables", async () => {
    await using cellSession = await runtime.openCellSession({ limits: withLimits({ leaseTimeoutMs: 3_000 }) });
    const first = await cellSession.run({ code: "kept = 4" });
    await new Promise((resolve) => setTimeout(resolve, 3_050));
    const next = await cellSession.run({ code: "globals().get('kept')" });
    expect(next.sandbox.id).not.toBe(first.sandbox.id);
    expect(next).toMatchObject({ resultJson: "4", diagnostics: { sandboxReplaced: { variables: "replayed", cells: 1 } } });
  });

  test("a lease that reaches its time limit while a cell runs ends with an error, and the next cell has the variables", async () => {
    await using cellSession = await runtime.openCellSession({ limits: withLimits({ leaseTimeoutMs: 3_000 }) });
    await cellSession.run({ code: "kept = 4" });
    const lost = await cellSession.run({ code: "kept = 5\nwhile True: pass" });
    expect(lost).toMatchObject({
      status: "sandbox_lost",
      error: {
        type: "LeaseExpired",
        message: "The sandbox reached its maximum lifetime of 3 s while the cell ran. Run the cell again: it gets a new sandbox.",
        limit: { name: "leaseTimeoutMs", allowed: 3_000, seen: 3_000 },
      },
    });
    const next = await cellSession.run({ code: "kept" });
    expect(next).toMatchObject({ resultJson: "4", diagnostics: { sandboxReplaced: { variables: "replayed", cells: 1 } } });
  });
});

test.each(testedDrivers)(
  "a pool can have no or several sandboxes on %s",
  async (driver) => {
    await using none = openTestRuntime(driver, { poolSize: 0 });
    const empty = await none.pool();
    await using cellSession = await none.openCellSession();
    expect((await cellSession.run({ code: "1" })).sandbox.start).toBe(driver === "gvisor" ? "restored" : "forked");
    await empty.filled();
    expect([empty.warm, none.gate.taken]).toEqual([0, 1]);

    await using three = openTestRuntime(driver, { poolSize: 3 });
    const pool = await three.pool();
    await pool.filled();
    expect(pool.warm).toBe(3);
    const taken = await Promise.all([pool.take({}), pool.take({}), pool.take({})]);
    expect(taken.map(({ start }) => start)).toEqual(["pool", "pool", "pool"]);
    await pool.filled();
    expect([pool.warm, three.gate.taken]).toEqual([3, 6]);
    await Promise.all(taken.map(({ lease }) => lease.close()));
  },
  120_000,
);

test("a warm sandbox is closed when a caller waits for its place, and replaced afterwards", async () => {
  await using runtime = openTestRuntime("bubblewrap", { poolSize: 1, maxSandboxes: 1 });
  const pool = await runtime.pool();
  await pool.filled();
  expect([pool.warm, runtime.gate.taken]).toEqual([1, 1]);
  const { lease, start } = await pool.take({ limits: withLimits({ memoryBytes: 700 * 1024 * 1024 }) });
  expect([start, pool.warm, runtime.gate.taken]).toEqual(["forked", 0, 1]);
  await lease.close();
  await pool.filled();
  const report = (await runtime.examineDrivers()).find(({ name }) => name === "bubblewrap");
  expect(report).toMatchObject({ usable: true });
  await pool.filled();
  expect(pool.warm).toBe(1);
}, 120_000);

test("a warm sandbox is replaced when it was idle for too long or died", async () => {
  await using runtime = openTestRuntime("bubblewrap");
  const [driver, snapshot] = [await runtime.driver(), await runtime.snapshot()];
  const opened: Lease[] = [];
  const open: SandboxDriver["open"] = async (options) => {
    opened.push(await driver.open(options));
    return opened.at(-1)!;
  };
  const { limits, gate } = runtime;
  const watched = { ...driver, open };
  await using pool = new SandboxPool({ driver: watched, snapshot, limits, size: 1, gate, maxIdleMs: 200 });
  await pool.filled();
  expect(await opened[0]!.died).toMatchObject({ cause: "closed" });
  await pool.filled();
  await opened.at(-1)!.close();
  const { lease } = await pool.take({});
  expect([lease.id === opened.at(-1)!.id, opened.length > 2]).toEqual([true, true]);
  await lease.close();
}, 60_000);

test("an idle sandbox of a cell session is closed, and the next cell reports what happened to the variables", async () => {
  await using runtime = openTestRuntime("bubblewrap");
  const pool = await runtime.pool();
  await using artifactChecker = createArtifactChecker();
  const taken: TakenLease[] = [];
  const take = async (signal?: AbortSignal): Promise<TakenLease> => {
    taken.push(await pool.take({ signal }));
    return taken.at(-1)!;
  };
  await using cellSession = openCellSession({ rollback: "fork", limits: runtime.limits, take, artifactChecker, idleMs: 100 });
  await cellSession.run({ code: "kept = 7" });
  expect(await taken[0]!.lease.died).toMatchObject({ cause: "closed" });
  const next = await cellSession.run({ code: "kept" });
  expect(next).toMatchObject({ resultJson: "7", diagnostics: { sandboxReplaced: { variables: "replayed" } } });
  expect(taken).toHaveLength(2);
});

test("a driver that cannot be used is an error with the reason, and no weaker driver is used instead", async () => {
  await using runtime = openTestRuntime("gvisor-rootless", {});
  const driver = (await runtime.drivers()).find((one) => one.name === "gvisor-rootless")!;
  const preflight = await driver.preflight();
  if (preflight.usable) expect((await runtime.driver()).name).toBe("gvisor-rootless");
  else await expect(runtime.driver()).rejects.toMatchObject({ code: "NO_SANDBOX", message: expect.stringContaining(preflight.reason) });
});
