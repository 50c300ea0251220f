import { expect, test } from "vitest";
import { createArtifactChecker } from "../artifacts/create-artifact-checker.ts";
import type { Death, Frame, Lease } from "../sandbox/contract.ts";
import { defaultLimits } from "../sandbox/limits.ts";
import { runCell } from "./run-cell.ts";

const usage = { peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };
const ended: Frame = { header: { type: "ended", cell: 1, signal: 9 }, body: new Uint8Array() };

const png: Frame = { header: { type: "artifact", cell: 1, kind: "image", alt: "A line that rises" }, body: new Uint8Array(100) };
const done: Frame = { header: { type: "done", cell: 1, status: "ok", diagnostics: {} }, body: new Uint8Array() };
const request = { cell: 1, code: new Uint8Array(), names: {}, expect: null, limits: defaultLimits };

/** A sandbox whose worker reports the end of the cell when it is interrupted, or only when the sandbox is being closed. */
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
  await using artifactChecker = createArtifactChecker();
  const lease = createLease(answers);
  const stop = new AbortController();
  const running = runCell({ ...request, rollback: "fork", artifactChecker, lease, signal: stop.signal });
  setImmediate(() => stop.abort(new Error("enough")));
  const ran = await running;
  expect([ran.aborted, ran.leaseUsable, lease.closed()]).toEqual([true, leaseUsable, !leaseUsable]);
});

test("an abort before the cell is sent leaves the sandbox unchanged", async () => {
  await using artifactChecker = createArtifactChecker();
  const stop = new AbortController();
  const sent: unknown[] = [];
  const lease = createLease("interrupt");
  const abortMeanwhile = async (): Promise<typeof usage> => {
    stop.abort(new Error("enough"));
    return usage;
  };
  const channel = { ...lease.channel, send: async (header: Frame["header"]) => void sent.push(header) };
  const running = runCell({
    ...request,
    rollback: "fork",
    artifactChecker,
    lease: { ...lease, resetPeak: abortMeanwhile, channel },
    signal: stop.signal,
  });
  await expect(running).rejects.toThrow("enough");
  expect([sent, lease.closed()]).toEqual([[], false]);
});

test.each([
  { rollback: "fork" as const, sent: ["cell", "rollback"], leaseUsable: true },
  { rollback: "none" as const, sent: ["cell"], leaseUsable: false },
])("an abort does not wait for a pending artifact check: rollback $rollback", async (given) => {
  const stop = new AbortController();
  const sent: string[] = [];
  const lease = createLease("interrupt");
  const frames = [png, done];
  const channel = {
    ...lease.channel,
    send: async ({ type }: Frame["header"]) => void sent.push(type),
    receive: async () => frames.shift() ?? null,
  };
  const artifactChecker = {
    pid: undefined,
    checkPng: () => {
      setImmediate(() => stop.abort(new Error("enough")));
      return new Promise<never>(() => {});
    },
    checkJson: async () => null,
    warm: () => {},
    [Symbol.asyncDispose]: async () => {},
  };
  const ran = await runCell({ ...request, rollback: given.rollback, artifactChecker, lease: { ...lease, channel }, signal: stop.signal });
  expect([ran.aborted, ran.leaseUsable, ran.artifacts, sent]).toEqual([true, given.leaseUsable, [], given.sent]);
});
