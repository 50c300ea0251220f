import { expect, test } from "vitest";
import { createCallQueue } from "./call-queue.ts";

test("calls run one at a time, in the order in which they came, and a failed one stops nobody", async () => {
  const queue = createCallQueue();
  const seen: string[] = [];
  const call = (name: string, fails = false): Promise<string> =>
    queue.run(async () => {
      seen.push(`${name} begins`);
      await Promise.resolve();
      seen.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    });
  const answers = await Promise.allSettled([call("a"), call("b", true), call("c")]);
  expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(seen).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
});

test("who gives up while waiting is let go at once, and its work is never begun", async () => {
  const queue = createCallQueue();
  const first = Promise.withResolvers<void>();
  const running = queue.run(() => first.promise);
  const stop = new AbortController();
  let begun = false;
  const waiting = queue.run(async () => {
    begun = true;
  }, stop.signal);
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await expect(queue.run(async () => {}, stop.signal)).rejects.toThrow("enough");
  first.resolve();
  await running;
  await queue.idle();
  expect(begun).toBe(false);
});
