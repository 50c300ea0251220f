import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { StoredEvent } from "../../../history/history.ts";
import { LiveTurn } from "./live-turn.ts";

const step = (number: number): { type: "step-start"; step: number; of: number } => ({ type: "step-start", step: number, of: 9 });

function createTurn(unattendedMs: number | null = null): { turn: LiveTurn; stored: StoredEvent[] } {
  const stored: StoredEvent[] = [];
  const turn = new LiveTurn({ tenant: "a", turnId: "t", conversationId: "c", unattendedMs, store: (event) => void stored.push(event) });
  return { turn, stored };
}
const never = new AbortController().signal;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("gives every listener all events after the last one that it has, and ends with the turn", async () => {
  const { turn, stored } = createTurn();
  turn.push(step(1));
  const collect = async (after: number): Promise<number[]> => {
    const numbers: number[] = [];
    for await (const { seq } of turn.follow(after, never)) numbers.push(seq);
    return numbers;
  };
  const [all, later] = [collect(0), collect(2)];
  await Promise.resolve();
  for (const number of [2, 3, 4]) turn.push(step(number));
  turn.end();
  expect(await Promise.all([all, later, collect(3)])).toEqual([[1, 2, 3, 4], [3, 4], [4]]);
  expect(stored.map(({ seq, event }) => [seq, event])).toEqual([1, 2, 3, 4].map((number) => [number, step(number)]));
});

test("releases a listener that disconnects between events", async () => {
  const { turn } = createTurn();
  const client = new AbortController();
  const waiting = turn.follow(0, client.signal).next();
  client.abort();
  expect(await waiting).toEqual({ done: true, value: undefined });
});

test("stops when the last listener has been gone for a while, also if it left between two events", async () => {
  const { turn } = createTurn(30);
  turn.push(step(1));
  const listener = turn.follow(0, never);
  await listener.next();
  vi.advanceTimersByTime(60);
  expect(turn.signal.aborted).toBe(false);
  await listener.return!();
  vi.advanceTimersByTime(29);
  expect(turn.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect((turn.signal.reason as Error).message).toBe("no client was listening to the turn");
});

test("needs no listener if it was started without one", async () => {
  const { turn } = createTurn(null);
  for await (const _ of turn.follow(0, AbortSignal.abort()));
  vi.advanceTimersByTime(60_000);
  expect(turn.signal.aborted).toBe(false);
});
