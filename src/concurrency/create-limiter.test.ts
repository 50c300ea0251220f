import { setImmediate as settled } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createLimiter } from "./create-limiter.ts";
import { runAsTenant } from "./tenant.ts";

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

test("tenants take turns, however much one of them has queued", async () => {
  const queue = createLimiter({ places: 1 });
  const order: string[] = [];
  const call = (tenant: string, name: string): Promise<void> =>
    runAsTenant(tenant, () =>
      queue.run(async () => {
        order.push(name);
        await settled();
      }),
    );
  const greedy = [1, 2, 3, 4].map((number) => call("greedy", `greedy ${number}`));
  const others = ["b 1", "c 1", "b 2"].map((name) => call(name[0]!, name));
  await Promise.all([...greedy, ...others]);
  expect(order).toEqual(["greedy 1", "b 1", "c 1", "greedy 2", "b 2", "greedy 3", "greedy 4"]);
});

test("between two turns of a waiting tenant, no other tenant has more than one turn for each place", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(3), { minLength: 1, maxLength: 40 }), fc.integer({ min: 1, max: 3 }), async (tenants, places) => {
      const slots = createLimiter({ places });
      const turns: number[] = [];
      const work = tenants.map((tenant) =>
        slots.run(
          async () => {
            turns.push(tenant);
            await settled();
          },
          undefined,
          String(tenant),
        ),
      );
      await Promise.all(work);
      expect(turns).toHaveLength(tenants.length);
      for (const tenant of new Set(tenants)) {
        const own = turns.flatMap((one, index) => (one === tenant ? [index] : []));
        const between = own.slice(1).map((end, index) => turns.slice(Math.max(own[index]! + 1, places), end));
        for (const others of between)
          for (const other of others) expect(others.filter((one) => one === other).length).toBeLessThanOrEqual(1);
      }
    }),
  );
});
