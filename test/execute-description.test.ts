import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defaultExecuteLimits, type EngineEnd } from "../src/execute/contract.ts";
import { claims, type Check } from "../src/execute/description/claims.ts";
import { describeExecute } from "../src/execute/description/describe-execute.ts";
import { createMontyEngine, type MontyEngine } from "../src/execute/monty/create-monty-engine.ts";

describe("what the description says of Monty", () => {
  let engine: MontyEngine;
  beforeAll(async () => {
    engine = createMontyEngine({ poolSize: 1 });
    await engine.warm();
  });
  afterAll(() => engine.close());

  it.each(claims)("$text", async ({ checks }) => {
    const seen = [];
    for (const { code } of checks) {
      const { end } = await engine.run({ code, limits: defaultExecuteLimits, callTool: async () => ({ ok: false, message: "no tools" }) });
      seen.push({ code, expect: toExpectation(end) });
    }
    expect(seen).toEqual(checks);
  });

  it("is shown by at least one script for each sentence", () => {
    expect(claims.filter(({ checks }) => checks.length === 0)).toEqual([]);
  });
});

function toExpectation(end: EngineEnd): Check["expect"] | EngineEnd {
  if (end.kind === "value") return { json: end.json };
  if (end.kind === "exception") return { raises: end.type };
  return end.kind === "syntax" && end.unsupported ? { refused: true } : end;
}

describe("the description", () => {
  const options = { limits: defaultExecuteLimits, engine: "auto", hasCpython: true, hasSession: true } as const;

  it("says the limits that are in force", () => {
    expect(describeExecute({ ...options, limits: { ...defaultExecuteLimits, executionMs: 7_500, toolCalls: 12 } })).toContain(
      "Limits: 7.5 s of computing (waiting for tools does not count), 5 min in all, 100 MB of memory, 12 tool calls, 16 at once, 256 KB of code, 10 MB of result, 64 KB of prints.",
    );
  });

  it("has every claim, once", () => {
    const text = describeExecute(options);
    for (const claim of claims) expect(text.split(claim.text)).toHaveLength(2);
  });

  it("says nothing of Monty where CPython is set, and nothing of sessions where there are none", () => {
    expect(describeExecute({ ...options, engine: "cpython" })).not.toContain("Monty");
    expect(describeExecute({ ...options, hasSession: false })).not.toContain("get_session_state");
  });

  it("promises CPython only where there is one", () => {
    expect(describeExecute(options)).toContain("runs in CPython instead");
    expect(describeExecute({ ...options, hasCpython: false })).not.toContain("runs in CPython instead");
    expect(describeExecute({ ...options, engine: "monty" })).not.toContain("runs in CPython instead");
  });

  it("stays short enough to be read with every request", () => {
    expect(describeExecute(options).length).toBeLessThan(9_000);
  });
});
