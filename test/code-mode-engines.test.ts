import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as sluice from "../src/index.ts";
import type { ToolError } from "../src/errors/tool-error.ts";
import { openFace, type CodeModeFace } from "./fixtures/open-code-mode.ts";
import { watchEventLoop } from "./fixtures/event-loop.ts";

/** A script that Monty cannot run works the same in CPython, here in a real sandbox of the default driver. */
let runtime: sluice.Runtime;
let catalog: sluice.ToolCatalog;
let auto: CodeModeFace;
let fixed: CodeModeFace;

beforeAll(async () => {
  runtime = sluice.createRuntime({ cacheDirectory: sluice.cacheDirectory(), poolSize: 0 });
  const echo = {
    name: "echo",
    description: "Gives back what it gets.",
    annotations: { readOnlyHint: true },
    execute: (args: unknown) => args,
  };
  catalog = sluice.createToolCatalog({ sources: [sluice.createLocalSource([echo])] });
  auto = openFace(runtime, { catalog });
  fixed = openFace(runtime, { catalog, engine: "monty" });
  await auto.execute("import collections"); // the first sandbox of a driver may take long
}, 120_000);
afterAll(async () => {
  await catalog[Symbol.asyncDispose]();
  await runtime.close();
});

describe("a script that Monty cannot run", () => {
  it.each<[code: string, result: unknown, reason: string]>([
    ["class A:\n    x = 3\nA.x", 3, "Line 1: Monty does not support class definitions."],
    ["match 2:\n    case n:\n        r = n\nr", 2, "Line 1: Monty does not support pattern matching (match statements)."],
    ["d = {'a': 1}\ndel d['a']\nd", {}, "Line 2: Monty does not support the 'del' statement."],
    ["def f():\n    yield 1\nlist(f())", [1], "Line 2: Monty does not support yield expressions."],
    ["from collections import Counter\nCounter('aab')", { a: 2, b: 1 }, "Line 1 imports collections, which Monty does not have."],
    ["import itertools\nlist(itertools.chain([1], [2]))", [1, 2], "Line 1 imports itertools, which Monty does not have."],
    [
      "def f():\n    import statistics\n    return statistics.mean([1, 2])\nf()",
      1.5,
      "Line 2 imports statistics, which Monty does not have.",
    ],
    [
      "def twice(f):\n    return lambda: 2 * f()\n@twice\ndef g():\n    return 2\ng()",
      4,
      "Line 3 has a decorator, which Monty does not apply.",
    ],
    ["import time, threading, subprocess\ntime.time() > 0", true, "Line 1 imports time, which Monty does not have."],
    ["import numpy as np\nint(np.arange(3).sum())", 3, "Line 1 imports numpy, which Monty does not have."],
    ["(-7.5) % 2", 0.5, "Line 1 uses % with a float, which Monty computes wrongly if one side is negative."],
    ["[[1]] < [[2]]", true, "Line 1 compares lists or sets with < or >, which Monty does not support."],
    ["set('a') < set('ab')", true, "Line 1 compares lists or sets with < or >, which Monty does not support."],
    [
      'd = {\'a\': 2.675}\nf"{round(d["a"], 2):>{6}}"',
      "  2.67",
      "Line 2 has an f-string with quotes inside a field, which this check cannot read.",
    ],
    ["round(2.675, 2)", 2.67, "Line 1 uses round(x, n), which Monty rounds by the decimal text."],
    ["-7.5 % 2", 0.5, "Line 1 uses % with a float, which Monty computes wrongly if one side is negative."],
    [
      "import datetime\ndatetime.date.today() > datetime.date(2024, 1, 1)",
      true,
      "Line 2 asks for the current time, which Monty does not have.",
    ],
    [`${"# long\n".repeat(20_000)}import heapq\nheapq.nlargest(1, [1, 3])`, [3], "Line 20001 imports heapq, which Monty does not have."],
  ])("%j runs in CPython, and the answer says why", async (code, result, engineReason) => {
    const answer = await auto.execute(`${code.replace(/([^\n]+)$/, "r_ = $1")}\n[r_, (await call_tool('echo', {'x': 1}))['x']]`);
    expect(answer).toMatchObject({ status: "ok", result: [result, 1], engine: "cpython", engineReason, toolCalls: 1 });
    expect(answer.aliases).toMatchObject([{ tool: "local__echo", bytes: 7 }]);
  });

  it("stays in Monty if the import is inside try", async () => {
    expect(await auto.execute("try:\n    import collections\nexcept ImportError:\n    r = 'no'\nr")).toMatchObject({
      engine: "monty",
      result: "no",
    });
  });

  it("fails if the engine is set to monty: imports with ImportError, syntax with an envelope and the line", async () => {
    expect((await fixed.execute("try:\n    from collections import Counter\nexcept ImportError:\n    return 'caught'")).result).toBe(
      "caught",
    );
    expect(await fixed.execute("x = 1\nfrom collections import Counter")).toMatchObject({
      engine: "monty",
      error: {
        error_kind: "sandbox_runtime",
        error_code: "SANDBOX_MODULE_BLOCKED",
        summary: "The module collections is not available here.",
        details: [{ path: "code", issue: "import of collections", line: 2 }],
        hints: [
          "Use built-ins and comprehensions: dict.setdefault, sorted, sum, zip, nested loops.",
          "If the script works without the module, catch ImportError.",
        ],
      },
    });
    expect(await fixed.execute("x = 1\nclass A:\n    pass")).toMatchObject({
      engine: "monty",
      toolCalls: 0,
      error: {
        error_kind: "sandbox_runtime",
        error_code: "SANDBOX_RUNTIME_ERROR",
        summary: "NotImplementedError: The monty syntax parser does not yet support class definitions (line 2)",
        details: [{ line: 2 }],
      },
    });
    expect(await fixed.execute("@print\ndef f():\n    pass\n1")).toMatchObject({
      engine: "monty",
      result: 1,
    });
    expect(fixed.descriptionOf("execute")).not.toContain("CPython instead");
  });
});

describe("CPython", () => {
  const inCpython = async (code: string): Promise<Awaited<ReturnType<CodeModeFace["execute"]>>> => {
    const answer = await auto.execute(`import collections\n${code}`);
    expect(answer.engine).toBe("cpython");
    return answer;
  };

  it("suggests a module of the snapshot instead of a missing one", async () => {
    const { error, engineReason } = await auto.execute("import polars");
    expect(engineReason).toBe("Line 1 imports polars, which Monty does not have.");
    expect(error).toMatchObject({
      error_code: "SANDBOX_MODULE_BLOCKED",
      summary: "The module polars is not available here.",
      hints: [
        "It is not installed and cannot be installed: use pandas (pd) instead.",
        "If the script works without the module, catch ImportError.",
      ],
    });
  });

  it("has no network, no sleep, and no evidence", async () => {
    for (const module of ["socket", "urllib.request", "requests", "httpx"]) {
      expect((await inCpython(`import ${module}`)).error).toMatchObject({
        error_kind: "sandbox_runtime",
        error_code: "SANDBOX_MODULE_BLOCKED",
        summary: `The module ${module} is not available here.`,
        details: [{ line: 2 }],
        hints: [
          "There is no network here: get data with await call_tool(name, params).",
          "If the script works without the module, catch ImportError.",
        ],
      });
    }
    expect((await inCpython("import asyncio\nawait asyncio.sleep(1)")).error).toMatchObject({
      error_code: "SANDBOX_RUNTIME_ERROR",
      summary: "AttributeError: module 'asyncio' has no attribute 'sleep' (line 3)",
      hints: ["Do not sleep: return after one status check, and check again in a later call."],
    });
    expect((await inCpython("sorted(name for name in globals() if name[0] != '_')")).result).toEqual(["call_tool", "collections"]);
  });

  it.each([
    "from datetime import datetime\ndatetime.now()",
    "from datetime import datetime\ndatetime.utcnow()",
    "from datetime import date\ndate.today()",
    "import time\ntime.time()",
    "import datetime\ngetattr(datetime.datetime, 'now')()",
  ])("asks for the date in CPython; where only Monty runs, the error says that it has no clock: %s", async (code) => {
    const { error } = await fixed.execute(code);
    const hint = "Monty has no clock: take the current date from your instructions or from a tool result.";
    expect((error as ToolError).hints[0]?.startsWith(hint)).toBe(true);
    if (!code.includes("getattr")) expect(await auto.execute(code)).toMatchObject({ status: "ok", engine: "cpython" });
  });

  it("keeps 1.0 as 1.0 in results, and raises for values without a JSON form, without lines of the worker", async () => {
    const { text } = await runtime
      .createCodeMode({ catalog, policy: sluice.createToolPolicy(), evidence: sluice.createEvidenceStore(), engine: "cpython" })
      .find(({ name }) => name === "execute")!
      .run({ code: "[1.0, 2.5]" });
    expect(text).toContain('"result":[1.0,2.5]');
    for (const value of ["b'a'", "ValueError('x')", "int", "(n for n in [1])"]) {
      const { error } = await inCpython(`[${value}]`);
      expect(error).toMatchObject({ error_code: "SANDBOX_RUNTIME_ERROR", summary: expect.stringContaining("has no JSON form") as string });
      expect(JSON.stringify(error)).not.toMatch(/dist-packages|File/);
    }
  });

  it("reports crashes and exits of its process as Monty does, and the next script runs", async () => {
    expect((await inCpython("import ctypes\nctypes.string_at(0)")).error).toMatchObject({
      error_kind: "sandbox_runtime",
      error_code: "SANDBOX_CRASHED",
      summary:
        "The process that ran the script was killed by SIGSEGV (signal 11). Nothing else is affected: the next script gets a new process.",
    });
    expect((await auto.execute("import json\nd = {}\nfor i in range(10000):\n    d = {'a': d}\njson.dumps(d)")).error).toMatchObject({
      error_code: "SANDBOX_CRASHED",
      summary: "The interpreter's process died: SIGSEGV. Nothing else is affected: the next script gets a new process.",
    });
    expect((await auto.execute("1")).result).toBe(1);
  });
});

describe.each(["monty", "cpython"] as const)("a limit in %s", (engine) => {
  const first = engine === "monty" ? "import math" : "import collections";

  it.each<[title: string, code: string, error: object]>([
    [
      "params of 5 MB",
      "await call_tool('echo', {'x': 'y' * 5_000_000})",
      {
        error_code: "SANDBOX_RUNTIME_ERROR",
        summary: expect.stringMatching(
          /^ValueError: call_tool\(name, params\): params has \d+ bytes of JSON or more, 4194304 are allowed \(line 2\)$/,
        ) as string,
      },
    ],
    [
      "params of 60,000 values",
      "await call_tool('echo', {'x': [1] * 60_000})",
      { error_kind: "mcp_input_validation", error_code: "SCHEMA_MAX_ITEMS", summary: "The parameters have more than 50000 values." },
    ],
    [
      "the name of a tool",
      "await call_tool('x' * 1_000_000, {})",
      { error_code: "SANDBOX_RUNTIME_ERROR", summary: "ValueError: call_tool(name, params): name has more than 1000 characters (line 2)" },
    ],
    [
      "the message of an exception",
      "raise ValueError('x' * 20_000_000)",
      { error_code: "SANDBOX_RUNTIME_ERROR", summary: expect.stringMatching(/^ValueError: x{1000}/) as string },
    ],
    [
      "the name of a function",
      `def ${"f".repeat(50_000)}(n):\n    return 1 / n\n${"f".repeat(50_000)}(0)`,
      { error_code: "SANDBOX_RUNTIME_ERROR", summary: "ZeroDivisionError: division by zero (line 3)" },
    ],
  ])("on %s is reported with the same message", async (_, code, error) => {
    const answer = await auto.execute(`${first}\n${code}`);
    expect(answer).toMatchObject({ engine, error, aliases: [] });
    expect(JSON.stringify(answer).length).toBeLessThan(20_000);
  });
});

describe("the host", () => {
  it("is not blocked by what a script sends", async () => {
    const eventLoop = watchEventLoop();
    const code = `for params in [{'x': [1] * 49_000}, {f'key{i}': i for i in range(40_000)}, {'x': '"' * 1_900_000}, {'x': [1] * 1_000_000}]:
    try:
        await call_tool('echo', params)
    except RuntimeError:
        pass
'over'`;
    expect((await auto.execute(code, { memoryBytes: 300_000_000 })).result).toBe("over");
    expect(eventLoop.stop()).toBeLessThan(1_000); // CPU time: about 100 ms on an idle machine; it used to be many seconds
  });

  it("continues while scripts compute, and refuses without namespaces unless process-only is set", async () => {
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 10);
    expect((await auto.execute("while True:\n    pass", { executionMs: 1_000 })).error).toMatchObject({ error_code: "SANDBOX_TIMEOUT" });
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(20);

    const without = { cacheDirectory: sluice.cacheDirectory(), poolSize: 0 };
    await using refusing = sluice.createRuntime({ ...without, monty: { bwrapPath: "/no/such/bwrap" } });
    expect((await openFace(refusing, { catalog }).execute("1")).error).toMatchObject({
      error_kind: "precondition_failed",
      error_code: "SANDBOX_UNAVAILABLE",
      summary: "Monty cannot be isolated in namespaces: the program /no/such/bwrap was not found.",
    });
    await using admitted = sluice.createRuntime({ ...without, monty: { bwrapPath: "/no/such/bwrap", isolation: "process-only" } });
    expect((await openFace(admitted, { catalog }).execute("1")).result).toBe(1);
  });
});
