import { expect, test } from "vitest";
import { createImageChecker } from "../artifacts/create-image-checker.ts";
import type { Death, Frame, Lease } from "../sandbox/contract.ts";
import { defaultLimits } from "../sandbox/limits.ts";
import { runCell } from "./run-cell.ts";

const usage = { peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };
const ended: Frame = { header: { type: "ended", cell: 1, signal: 9 }, body: new Uint8Array() };

/** A sandbox whose worker says that the cell has ended when it is interrupted, or only once the sandbox itself is being closed. */
function createLease(answers: "interrupt" | "close"): Lease & { readonly closed: () => boolean } {
  const frame = Promise.withResolvers<Frame>();
  const death = Promise.withResolvers<Death>();
  let closed = false;
  const close = async (): Promise<void> => {
    closed = true;
    frame.resolve(ended);
    death.resolve({ cause: "closed", detail: "closed" });
  };
  return {
    id: "lease",
    driver: "bubblewrap",
    start: "forked",
    openedAt: 0,
    channel: {
      send: async ({ type }) => void (type === answers && frame.resolve(ended)),
      receive: () => frame.promise,
      close: () => {},
    },
    died: death.promise,
    usage: async () => usage,
    resetPeak: async () => usage,
    close,
    closed: () => closed,
    [Symbol.asyncDispose]: close,
  };
}

test.each([
  { answers: "interrupt" as const, leaseUsable: true },
  { answers: "close" as const, leaseUsable: false },
])("an aborted cell whose worker answers to $answers leaves a usable sandbox: $leaseUsable", async ({ answers, leaseUsable }) => {
  await using images = createImageChecker();
  const lease = createLease(answers);
  const stop = new AbortController();
  const options = { cell: 1, code: new Uint8Array(), rollback: "fork" as const, names: {}, expect: null, limits: defaultLimits, images };
  const running = runCell({ ...options, lease, signal: stop.signal });
  setImmediate(() => stop.abort(new Error("enough")));
  const ran = await running;
  expect([ran.aborted, ran.leaseUsable, lease.closed()]).toEqual([true, leaseUsable, !leaseUsable]);
});
