import { describe, expect, test } from "vitest";
import { runAsTenant } from "../concurrency/tenant.ts";
import { createGate } from "./pool.ts";

describe("the gate", () => {
  test("admits as many callers as it has places, and the next in line when one leaves", async () => {
    const gate = createGate({ places: 2, deadlineMs: 10_000 });
    const first = await gate.enter();
    await gate.enter();
    const order: string[] = [];
    const third = gate.enter().then((leave) => (order.push("third"), leave));
    const fourth = gate.enter().then((leave) => (order.push("fourth"), leave));
    expect([gate.taken, gate.waiting, gate.tryEnter()]).toEqual([2, 2, null]);
    first();
    first(); // leaving twice frees only one place
    (await third)();
    await fourth;
    expect([order, gate.taken, gate.waiting]).toEqual([["third", "fourth"], 2, 0]);
  });

  test("gives sandboxes to tenants in turn, however many one of them waits for", async () => {
    const gate = createGate({ places: 1, deadlineMs: 60_000 });
    const leave = await runAsTenant("greedy", () => gate.enter());
    const order: string[] = [];
    const open = async (tenant: string): Promise<void> => {
      const leaveAgain = await runAsTenant(tenant, () => gate.enter());
      order.push(tenant);
      leaveAgain();
    };
    const all = [...Array.from({ length: 5 }, () => open("greedy")), open("neighbour")];
    leave();
    await Promise.all(all);
    expect(order.indexOf("neighbour")).toBe(0);
  });

  test("rejects at the deadline with the number of places", async () => {
    const gate = createGate({ places: 1, deadlineMs: 20 });
    await gate.enter();
    await expect(gate.enter()).rejects.toMatchObject({
      code: "SANDBOX_QUEUE_TIMEOUT",
      message: "No sandbox became free within 0.02 s: all 1 are in use.",
      details: { maxSandboxes: 1 },
    });
    expect(gate.waiting).toBe(0);
  });

  test("asks the holders of places one after the other when a caller starts to wait", async () => {
    const gate = createGate({ places: 1, deadlineMs: 10_000 });
    const asked: string[] = [];
    const leave = await gate.enter();
    gate.onWaiting(() => (asked.push("has no place to give up"), false));
    const end = gate.onWaiting(() => (asked.push("gives up a place"), leave(), true));
    gate.onWaiting(() => (asked.push("is not needed"), true));
    expect(asked).toEqual([]);
    const second = await gate.enter();
    expect(asked).toEqual(["has no place to give up", "gives up a place"]);
    end();
    const third = gate.enter();
    expect(asked).toEqual(["has no place to give up", "gives up a place", "has no place to give up", "is not needed"]);
    second();
    await third;
  });

  test("removes a caller from the queue on abort", async () => {
    const gate = createGate({ places: 1, deadlineMs: 10_000 });
    const leave = await gate.enter();
    const stop = new AbortController();
    const waiting = gate.enter(stop.signal);
    stop.abort(new Error("no longer"));
    await expect(waiting).rejects.toThrow("no longer");
    leave();
    expect([gate.taken, gate.waiting]).toEqual([0, 0]);
  });
});
