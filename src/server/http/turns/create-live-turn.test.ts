import { expect, test } from "vitest";
import type { StoredEvent } from "../../../history/history.ts";
import { createLiveTurn, type TurnFeed } from "./create-live-turn.ts";

const step = (number: number): { type: "step-start"; step: number; of: number } => ({ type: "step-start", step: number, of: 9 });

function liveTurn(unattendedMs: number | null = null): { turn: TurnFeed; kept: StoredEvent[] } {
  const kept: StoredEvent[] = [];
  return {
    kept,
    turn: createLiveTurn({ tenant: "a", turnId: "t", conversationId: "c", unattendedMs, keep: (stored) => void kept.push(stored) }),
  };
}
const never = new AbortController().signal;

test("gives every listener every event after the one that it saw last, and ends with the turn", async () => {
  const { turn, kept } = liveTurn();
  turn.push(step(1));
  const collect = async (after: number): Promise<number[]> => {
    const seen: number[] = [];
    for await (const { seq } of turn.follow(after, never)) seen.push(seq);
    return seen;
  };
  const [all, later] = [collect(0), collect(2)];
  await Promise.resolve();
  for (const number of [2, 3, 4]) turn.push(step(number));
  turn.end();
  expect(await Promise.all([all, later, collect(3)])).toEqual([[1, 2, 3, 4], [3, 4], [4]]);
  expect(kept.map(({ seq, event }) => [seq, event])).toEqual([1, 2, 3, 4].map((number) => [number, step(number)]));
});

test("lets go of a listener that goes away while nothing happens", async () => {
  const { turn } = liveTurn();
  const gone = new AbortController();
  const waiting = turn.follow(0, gone.signal).next();
  gone.abort();
  expect(await waiting).toEqual({ done: true, value: undefined });
});

test("is ended when nobody listens any more, also when the last one left between two events", async () => {
  const { turn } = liveTurn(30);
  turn.push(step(1));
  const listener = turn.follow(0, never);
  await listener.next();
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(turn.signal.aborted).toBe(false);
  await listener.return!();
  await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
  expect((turn.signal.reason as Error).message).toBe("nobody listened to the turn any more");
});

test("needs no listener when it was asked for without one", async () => {
  const { turn } = liveTurn(null);
  for await (const _ of turn.follow(0, AbortSignal.abort()));
  expect(turn.signal.aborted).toBe(false);
});
