import { setImmediate as settled } from "node:timers/promises";
import { expect, test } from "vitest";
import { createLimiter } from "./create-limiter.ts";

test("runs as much work as there are places, first come, first served", async () => {
  const slots = createLimiter({ places: 2 });
  const started: number[] = [];
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const runs = ends.map(({ promise }, index) =>
    slots.run(async () => {
      started.push(index);
      await promise;
      return index;
    }),
  );
  await settled();
  expect(started).toEqual([0, 1]);
  ends[1]!.resolve();
  await settled();
  expect(started).toEqual([0, 1, 2]);
  for (const { resolve } of ends) resolve();
  expect(await Promise.all(runs)).toEqual([0, 1, 2, 3, 4]);
});

test("frees a place after a failure, and gives none to an aborted caller", async () => {
  const slots = createLimiter({ places: 1 });
  const hold = Promise.withResolvers<void>();
  const first = slots.run(() => hold.promise);
  const abort = new AbortController();
  const second = slots.run(() => Promise.resolve("never"), abort.signal);
  const third = slots.run(() => Promise.resolve("third"));
  abort.abort("enough");
  await expect(second).rejects.toBe("enough");
  hold.reject(new Error("boom"));
  await expect(first).rejects.toThrow("boom");
  expect(await third).toBe("third");
  await expect(slots.run(() => Promise.resolve(), AbortSignal.abort("before"))).rejects.toBe("before");
});

test("with one place, work runs one at a time and in order, and a failure does not stop the rest", async () => {
  const queue = createLimiter({ places: 1 });
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

test("an abort while waiting rejects at once, and the work never starts", async () => {
  const queue = createLimiter({ places: 1 });
  const first = Promise.withResolvers<void>();
  const running = queue.run(() => first.promise);
  const stop = new AbortController();
  let hasStarted = false;
  const waiting = queue.run(async () => {
    hasStarted = true;
  }, stop.signal);
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await expect(queue.run(async () => {}, stop.signal)).rejects.toThrow("enough");
  first.resolve();
  await running;
  await queue.idle();
  expect(hasStarted).toBe(false);
});
