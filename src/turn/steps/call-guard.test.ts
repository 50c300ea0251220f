import { describe, expect, test } from "vitest";
import { createCallGuard } from "./call-guard.ts";
import type { CallRecord } from "../ledger.ts";

const record = (facts: Partial<CallRecord>): CallRecord => ({
  step: 1,
  callId: "c",
  tool: "get",
  server: "market",
  input: {},
  status: "ok",
  durationMs: 1,
  aliases: [],
  artifacts: [],
  isEmpty: false,
  ...facts,
});
const failing = (kind: string | null): CallRecord => record({ status: "error", failure: { kind, code: "X", reason: "down." } });

describe("the guard of a loop", () => {
  test("forgives empty results once there is something", () => {
    const guard = createCallGuard();
    const empty = record({ isEmpty: true });
    guard.judgeStep([empty, empty]);
    guard.judgeStep([record({})]);
    guard.judgeStep([empty, empty]);
    expect(guard.tripped).toBeNull();
    guard.judgeStep([empty]);
    expect(guard.tripped?.stopReason).toBe("bounded_empty_result");
  });

  test("counts failures of each server by itself, and upstream failures more than others", () => {
    const guard = createCallGuard();
    for (let step = 0; step < 4; step += 1) guard.judgeStep([failing(null)]);
    guard.judgeStep([{ ...failing("upstream_http"), server: "other" }]);
    expect(guard.tripped).toBeNull();
    guard.judgeStep([failing(null)]);
    expect(guard.tripped).toEqual({
      stopReason: "bounded_upstream_failure",
      detail: "The server market failed 5 times in a row. The last time: down.",
    });
  });

  test("says of the third same call what the first two came to", () => {
    const ended = (call: CallRecord): string | undefined => {
      const guard = createCallGuard();
      expect([guard.admit(call), guard.admit(call)]).toEqual([true, true]);
      guard.judgeStep([call]);
      expect(guard.admit(call)).toBe(false);
      return guard.tripped?.stopReason;
    };
    expect(ended(record({}))).toBe("bounded_repeat_guardrail");
    expect(ended(record({ isEmpty: true }))).toBe("bounded_empty_result");
    expect(ended(failing("upstream_http"))).toBe("bounded_upstream_failure");
    expect(ended(failing(null))).toBe("bounded_repeat_guardrail");
  });

  test("keeps the first reason", () => {
    const guard = createCallGuard();
    for (let time = 0; time < 3; time += 1) guard.admit({ tool: "a", input: {} });
    for (let time = 0; time < 3; time += 1) guard.judgeStep([record({ isEmpty: true })]);
    expect(guard.tripped?.stopReason).toBe("bounded_repeat_guardrail");
  });
});
