import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defaultExecuteLimits, type EngineEnd, type EngineOutcome, type ExecuteLimits, type Script } from "../src/execute/engine.ts";
import { createMontyEngine, type MontyEngine } from "../src/execute/monty/create-monty-engine.ts";

/** Every known way in which a script kills or hangs its interpreter. The host survives, the outcome is right, and the next script works. */
describe.each(["namespaces", "process-only"] as const)("a script that breaks its interpreter (%s)", (isolation) => {
  let engine: MontyEngine;
  beforeAll(async () => {
    engine = createMontyEngine({ isolation, poolSize: 1 });
    await engine.warm();
  });
  afterAll(async () => {
    await engine.close();
    expect(childrenOf(process.pid)).toEqual([]);
  });

  const outOfMemory: EngineEnd = { kind: "limit", limit: "memoryBytes", allowed: 100_000_000 };
  const timeout = { kind: "limit", limit: "executionMs", allowed: 500, seen: expect.any(Number) } as EngineEnd;
  const crashed: EngineEnd = { kind: "crashed", detail: "The interpreter's process died: SIGSEGV." };

  it.each<[title: string, code: string, end: EngineEnd]>([
    ["asks for a terabyte at once", "'a' * 10**12", { ...outOfMemory, seen: expect.any(Number) as number }],
    ["dumps a dict of ten thousand levels", "import json\nd = {}\nfor i in range(10000):\n    d = {'a': d}\njson.dumps(d)", crashed],
    [
      "gathers itself endlessly",
      "import asyncio\nasync def f(n):\n    return await asyncio.gather(f(n + 1), f(n + 1))\nawait f(0)",
      expect.toSatisfy((end: EngineEnd) => end.kind === "crashed" || end.kind === "limit") as EngineEnd,
    ],
    ["joins to twenty gigabytes", "','.join(['x' * 1000000] * 20000)", outOfMemory],
    ["raises seven to a hundred million", "7 ** (10 ** 8)", { ...outOfMemory, seen: expect.any(Number) as number }],
    [
      "squares a number of millions of digits, which Monty cannot interrupt",
      "x = 7 ** (10 ** 7 * 2)\ny = x * x\nlen(str(y))",
      expect.objectContaining({ kind: "limit" }) as EngineEnd,
    ],
    ["loops forever", "while True:\n    pass", timeout],
    [
      "loops forever and catches everything",
      "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
      timeout,
    ],
    ["fills a list forever", "x = []\nwhile True:\n    x.append('a' * 1000)", { ...outOfMemory, seen: expect.any(Number) as number }],
  ])("%s", async (_, code, end) => {
    const isTimed = end === timeout || !("limit" in end || "detail" in end);
    const outcome = await run(code, { executionMs: isTimed ? 500 : 50_000 });
    expect(outcome.end).toEqual(end);
    expect(await run("1 + 1")).toMatchObject({ end: { kind: "value", json: "2" } });
  });

  it("recurses endlessly, which is an ordinary exception", async () => {
    const { end } = await run("def f(n):\n    return f(n + 1)\nf(0)");
    expect(end).toMatchObject({ kind: "exception", type: "RecursionError", message: "maximum recursion depth exceeded", line: 2 });
  });

  it("is killed from outside while it computes", async () => {
    const outcome = run("print('begun')\nwhile True:\n    print('x')", { executionMs: 20_000 });
    await killWhenBusy();
    expect((await outcome).end).toEqual({ kind: "crashed", detail: "The interpreter's process died: SIGKILL." });
    expect(await run("1 + 1")).toMatchObject({ end: { kind: "value", json: "2" } });
  });

  it("is killed from outside while a tool runs, whose signal is aborted", async () => {
    const called = Promise.withResolvers<AbortSignal>();
    const outcome = engine.run({
      code: "await call_tool('slow', {})",
      limits: defaultExecuteLimits,
      callTool: ({ signal }) => {
        called.resolve(signal);
        return new Promise((resolve) => signal.addEventListener("abort", () => resolve({ ok: false, message: "aborted" })));
      },
    });
    const signal = await called.promise;
    for (const pid of innermost(process.pid)) process.kill(pid, "SIGKILL");
    expect((await outcome).end).toEqual({ kind: "crashed", detail: "The interpreter's process died: SIGKILL." });
    expect(signal.aborted).toBe(true);
    expect(await run("1 + 1")).toMatchObject({ end: { kind: "value", json: "2" } });
  });

  it("is aborted: the run rejects with the reason, and its process has exited", async () => {
    const controller = new AbortController();
    const outcome = run("while True:\n    pass", {}, controller.signal);
    const before = await killTarget();
    controller.abort(new Error("enough"));
    await expect(outcome).rejects.toThrow("enough");
    expect(before.filter(isThere)).toEqual([]);
    expect(await run("1 + 1")).toMatchObject({ end: { kind: "value", json: "2" } });
  });

  it("keeps what it printed before the time limit", async () => {
    const outcome = await run("import math\nfor i in range(3):\n    print(i)\nwhile True:\n    print('more')", { executionMs: 400 });
    expect(outcome.end).toEqual({ ...timeout, allowed: 400 });
    expect(outcome.prints).toMatch(/^0\n1\n2\nmore\n/);
  });

  function run(code: string, limits: Partial<ExecuteLimits> = {}, signal?: AbortSignal): Promise<EngineOutcome> {
    const script: Script = {
      code,
      limits: { ...defaultExecuteLimits, ...limits },
      callTool: async () => ({ ok: true, json: "null" }),
      signal,
    };
    return engine.run(script);
  }
});

async function killWhenBusy(): Promise<void> {
  for (const pid of await killTarget()) process.kill(pid, "SIGKILL");
}

/** The process that computes: the one that used CPU time between two checks. */
async function killTarget(): Promise<number[]> {
  for (;;) {
    const before = new Map(innermost(process.pid).map((pid) => [pid, cpuTime(pid)]));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const busy = innermost(process.pid).filter((pid) => cpuTime(pid) > (before.get(pid) ?? Infinity));
    if (busy.length > 0) return busy;
  }
}

function innermost(pid: number): number[] {
  const children = childrenOf(pid);
  return children.flatMap((child) => (childrenOf(child).length === 0 ? [child] : innermost(child)));
}

function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) => {
    try {
      return readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number);
    } catch {
      return [];
    }
  });
}

function cpuTime(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return 0;
  }
}

function isThere(pid: number): boolean {
  return cpuTime(pid) > 0;
}
