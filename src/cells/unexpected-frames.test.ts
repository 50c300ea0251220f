import { expect, test } from "vitest";
import { createArtifactChecker } from "../artifacts/create-artifact-checker.ts";
import type { Death, Frame, Lease } from "../sandbox/contract.ts";
import { withLimits } from "../sandbox/limits.ts";
import { runCell } from "./run-cell.ts";

const CELL = 7;
const usage = { peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };

/** A sandbox whose worker sends these frames regardless of the request. */
function createLease(frames: Frame[]): Lease & { readonly closed: () => boolean } {
  const death = Promise.withResolvers<Death>();
  let closed = false;
  const close = async (): Promise<void> => {
    closed = true;
    death.resolve({ cause: "closed", detail: "closed" });
  };
  return {
    ...{ id: "lease", driver: "bubblewrap", start: "forked" },
    channel: { send: async () => {}, receive: async () => frames.shift() ?? null, close: () => {} },
    died: death.promise,
    usage: async () => usage,
    resetPeak: async () => usage,
    close,
    closed: () => closed,
    [Symbol.asyncDispose]: close,
  };
}

const frame = (header: Frame["header"], body = ""): Frame => ({ header, body: Buffer.from(body) });
const strange = (type: string): string => `it sent an unexpected frame of type "${type}"`;
const ofAnother = `it sent a frame for cell 6 while cell ${CELL} was running`;

test.each([
  { sent: frame({ type: "imported" }), why: strange("imported") },
  { sent: frame({ type: "ready", nonce: "x", python: "3.13" }), why: strange("ready") },
  { sent: frame({ type: "warmed" }), why: strange("warmed") },
  { sent: frame({ type: "input-ok", alias: "x" }), why: strange("input-ok") },
  { sent: frame({ type: "undone", ok: true }), why: strange("undone") },
  { sent: frame({ type: "call_tool", cell: CELL, name: "shell" }), why: strange("call_tool") },
  { sent: frame({ type: "no such frame" }), why: strange("no such frame") },
  { sent: frame({ type: "output", cell: CELL, stream: "stdlog" }, "x"), why: strange("output") },
  { sent: frame({ type: "output", cell: 6, stream: "stdout" }, "x"), why: ofAnother },
  { sent: frame({ type: "artifact", cell: 6, kind: "image", alt: "A line that rises" }, "x"), why: ofAnother },
  { sent: frame({ type: "done", cell: 6, status: "ok", diagnostics: {} }, "1"), why: ofAnother },
  { sent: frame({ type: "ended", cell: 6, signal: 9 }), why: ofAnother },
  { sent: frame({ type: "output", cell: CELL, stream: "stdout" }, "x".repeat(100_000)), why: "it sent more output than allowed" },
])("an unexpected frame ends the lease: $sent.header", async ({ sent, why }) => {
  await using artifactChecker = createArtifactChecker();
  const lease = createLease([sent, frame({ type: "done", cell: CELL, status: "ok", diagnostics: {} }, '"believed"')]);
  const limits = withLimits({ stdoutBytes: 1000, stderrBytes: 1000 });
  const ran = await runCell({
    lease,
    cell: CELL,
    code: new Uint8Array(),
    rollback: "fork",
    names: {},
    expect: null,
    limits,
    artifactChecker,
  });
  expect([ran.status, ran.error, ran.resultJson, ran.leaseUsable, lease.closed()]).toEqual([
    "sandbox_lost",
    { type: "SandboxLost", message: `The sandbox is gone: ${why}.` },
    null,
    false,
    true,
  ]);
});
