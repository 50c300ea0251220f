import { expect, test } from "vitest";
import { createTurnLimiter } from "./client-limits.ts";
import { HttpFailure, toFailureResponse } from "./http-failure.ts";

const rules = { maxTurns: 2, maxTurnsPerClient: 1, maxQueuedPerClient: 1, queueDeadlineMs: 60_000 };

test("queues turns beyond the limit in order, without one client holding up another", async () => {
  const limiter = createTurnLimiter(rules);
  const order: string[] = [];
  const leaveA = await limiter.enter(undefined, "a");
  const secondA = limiter.enter(undefined, "a").then((leave) => (order.push("a2"), leave));
  const leaveB = await limiter.enter(undefined, "b");
  const c = limiter.enter(undefined, "c").then((leave) => (order.push("c"), leave));
  expect([limiter.taken, limiter.waiting]).toEqual([2, 2]);
  leaveB(); // client a is at its own limit, so c goes first
  const leaveC = await c;
  leaveA();
  leaveA(); // a second call does nothing
  const leaveA2 = await secondA;
  expect(order).toEqual(["c", "a2"]);
  leaveA2();
  leaveC();
  expect([limiter.taken, limiter.waiting]).toEqual([0, 0]);
});

test("starts the turns of clients in turn, however many one of them has queued", async () => {
  const limiter = createTurnLimiter({ ...rules, maxTurns: 1, maxTurnsPerClient: 1, maxQueuedPerClient: 10 });
  const leave = await limiter.enter(undefined, "greedy");
  const order: string[] = [];
  const run = async (tenant: string): Promise<void> => await limiter.run(async () => void order.push(tenant), undefined, tenant);
  const all = [...Array.from({ length: 5 }, () => run("greedy")), run("neighbour"), run("other")];
  leave();
  await Promise.all(all);
  expect(order).toEqual(["neighbour", "other", "greedy", "greedy", "greedy", "greedy", "greedy"]);
});

test("refuses a client whose queue is full and says when to retry", async () => {
  const limiter = createTurnLimiter(rules);
  await limiter.enter(undefined, "a");
  const waiting = limiter.enter(undefined, "a");
  const failure = await limiter.enter(undefined, "a").catch((error: unknown) => error as HttpFailure);
  expect(failure).toBeInstanceOf(HttpFailure);
  expect(failure).toMatchObject({ code: "TOO_MANY_TURNS", message: "Too many turns are running: the queue is full." });
  const response = toFailureResponse(failure);
  expect([response.status, response.headers.get("retry-after")]).toEqual([429, "15"]);
  void waiting;
});

test("removes clients from the queue that wait too long or disconnect", async () => {
  const limiter = createTurnLimiter({ ...rules, queueDeadlineMs: 20 });
  await limiter.enter(undefined, "a");
  await expect(limiter.enter(undefined, "a")).rejects.toThrow("Too many turns are running: none ended within 0.02 s.");
  const client = new AbortController();
  const patient = createTurnLimiter(rules);
  const leave = await patient.enter(undefined, "a");
  const waiting = patient.enter(client.signal, "a");
  client.abort(new Error("disconnected"));
  await expect(waiting).rejects.toThrow("disconnected");
  expect(patient.waiting).toBe(0);
  leave();
  expect(patient.taken).toBe(0);
});
