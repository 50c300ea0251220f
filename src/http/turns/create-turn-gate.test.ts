import { expect, test } from "vitest";
import { HttpFailure } from "../http-failure.ts";
import { createTurnGate } from "./create-turn-gate.ts";

const rules = { maxTurns: 2, maxTurnsPerClient: 1, maxQueuedPerClient: 1, queueDeadlineMs: 60_000 };

test("lets as many run as may, and the rest in the order in which they came, without one client holding up another", async () => {
  const gate = createTurnGate(rules);
  const order: string[] = [];
  const leaveA = await gate.enter("a");
  const secondA = gate.enter("a").then((leave) => (order.push("a2"), leave));
  const leaveB = await gate.enter("b");
  const c = gate.enter("c").then((leave) => (order.push("c"), leave));
  expect([gate.running, gate.queued]).toEqual([2, 2]);
  leaveB(); // a is at its own limit, so c goes first
  const leaveC = await c;
  leaveA();
  leaveA(); // once is enough
  const leaveA2 = await secondA;
  expect(order).toEqual(["c", "a2"]);
  leaveA2();
  leaveC();
  expect([gate.running, gate.queued]).toEqual([0, 0]);
});

test("tells who does not fit in the line when to come back", async () => {
  const gate = createTurnGate(rules);
  await gate.enter("a");
  const waiting = gate.enter("a");
  const failure = await gate.enter("a").catch((error: unknown) => error as HttpFailure);
  expect(failure).toBeInstanceOf(HttpFailure);
  expect(failure).toMatchObject({
    status: 429,
    code: "TOO_MANY_TURNS",
    message: "As many turns run as may, and the line is full.",
    retryAfterSeconds: 15,
  });
  void waiting;
});

test("lets go of who waited for too long, and of who went away", async () => {
  const gate = createTurnGate({ ...rules, queueDeadlineMs: 20 });
  await gate.enter("a");
  await expect(gate.enter("a")).rejects.toThrow("As many turns run as may, and none ended within 0.02 s.");
  const gone = new AbortController();
  const patient = createTurnGate(rules);
  const leave = await patient.enter("a");
  const waiting = patient.enter("a", gone.signal);
  gone.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  expect(patient.queued).toBe(0);
  leave();
  expect(patient.running).toBe(0);
});
