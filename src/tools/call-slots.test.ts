import { setImmediate as settled } from "node:timers/promises";
import { expect, it } from "vitest";
import { createCallSlots } from "./call-slots.ts";

it("lets as many run as there are slots, in the order in which they came", async () => {
  const slots = createCallSlots(2);
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

it("gives a slot back after a failure, and none to who has given up", async () => {
  const slots = createCallSlots(1);
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
