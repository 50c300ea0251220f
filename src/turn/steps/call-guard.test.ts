import { describe, expect, test } from "vitest";
import { CallGuard } from "./call-guard.ts";
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
const failed = (kind: string | null): CallRecord => record({ status: "error", failure: { kind, code: "X", reason: "down." } });

describe("the call guard", () => {
  test("forgets empty results once a call returns data", () => {
    const guard = new CallGuard();
    const empty = record({ isEmpty: true });
    guard.judgeStep([empty, empty]);
    guard.judgeStep([record({})]);
    guard.judgeStep([empty, empty]);
    expect(guard.tripped).toBeNull();
    guard.judgeStep([empty]);
    expect(guard.tripped?.stopReason).toBe("bounded_empty_result");
  });

  test("counts the failures of each server separately, and stops earlier for upstream failures", () => {
    const guard = new CallGuard();
    for (let step = 0; step < 4; step += 1) guard.judgeStep([failed(null)]);
    guard.judgeStep([{ ...failed("upstream_http"), server: "other" }]);
    expect(guard.tripped).toBeNull();
    guard.judgeStep([failed(null)]);
    expect(guard.tripped).toEqual({
      stopReason: "bounded_upstream_failure",
      detail: "The server market failed 5 times in a row. Last error: down.",
    });
  });

  test("explains a third identical call by how the first two ended", () => {
    const stopReasonAfter = (call: CallRecord): string | undefined => {
      const guard = new CallGuard();
      expect([guard.admit(call), guard.admit(call)]).toEqual([true, true]);
      guard.judgeStep([call]);
      expect(guard.admit(call)).toBe(false);
      return guard.tripped?.stopReason;
    };
    expect(stopReasonAfter(record({}))).toBe("bounded_repeat_guardrail");
    expect(stopReasonAfter(record({ isEmpty: true }))).toBe("bounded_empty_result");
    expect(stopReasonAfter(failed("upstream_http"))).toBe("bounded_upstream_failure");
    expect(stopReasonAfter(failed(null))).toBe("bounded_repeat_guardrail");
  });

  test("keeps the first reason it tripped for", () => {
    const guard = new CallGuard();
    for (let time = 0; time < 3; time += 1) guard.admit({ tool: "a", input: {} });
    for (let time = 0; time < 3; time += 1) guard.judgeStep([record({ isEmpty: true })]);
    expect(guard.tripped?.stopReason).toBe("bounded_repeat_guardrail");
  });
});
