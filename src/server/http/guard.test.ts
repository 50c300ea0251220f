import { expect, test } from "vitest";
import { HttpFailure, toFailureResponse } from "./http-failure.ts";
import { createTurnGate } from "./guard.ts";

const rules = { maxTurns: 2, maxTurnsPerClient: 1, maxQueuedPerClient: 1, queueDeadlineMs: 60_000 };

test("lets as many run as may, and the rest in the order in which they came, without one client holding up another", async () => {
  const gate = createTurnGate(rules);
  const order: string[] = [];
  const leaveA = await gate.enter(undefined, "a");
  const secondA = gate.enter(undefined, "a").then((leave) => (order.push("a2"), leave));
  const leaveB = await gate.enter(undefined, "b");
  const c = gate.enter(undefined, "c").then((leave) => (order.push("c"), leave));
  expect([gate.taken, gate.waiting]).toEqual([2, 2]);
  leaveB(); // a is at its own limit, so c goes first
  const leaveC = await c;
  leaveA();
  leaveA(); // once is enough
  const leaveA2 = await secondA;
  expect(order).toEqual(["c", "a2"]);
  leaveA2();
  leaveC();
  expect([gate.taken, gate.waiting]).toEqual([0, 0]);
});

test("tells who does not fit in the line when to come back", async () => {
  const gate = createTurnGate(rules);
  await gate.enter(undefined, "a");
  const waiting = gate.enter(undefined, "a");
  const failure = await gate.enter(undefined, "a").catch((error: unknown) => error as HttpFailure);
  expect(failure).toBeInstanceOf(HttpFailure);
  expect(failure).toMatchObject({ code: "TOO_MANY_TURNS", message: "As many turns run as may, and the line is full." });
  const response = toFailureResponse(failure);
  expect([response.status, response.headers.get("retry-after")]).toEqual([429, "15"]);
  void waiting;
});

test("lets go of who waited for too long, and of who went away", async () => {
  const gate = createTurnGate({ ...rules, queueDeadlineMs: 20 });
  await gate.enter(undefined, "a");
  await expect(gate.enter(undefined, "a")).rejects.toThrow("As many turns run as may, and none ended within 0.02 s.");
  const gone = new AbortController();
  const patient = createTurnGate(rules);
  const leave = await patient.enter(undefined, "a");
  const waiting = patient.enter(gone.signal, "a");
  gone.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  expect(patient.waiting).toBe(0);
  leave();
  expect(patient.taken).toBe(0);
});
