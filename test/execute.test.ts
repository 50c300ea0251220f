import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { errorKinds } from "../src/errors/error-table.ts";
import { parseToolError, type ToolError } from "../src/errors/tool-error.ts";
import { getEnvelopeContract } from "../src/errors/error-table.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import type { Engine, EngineOutcome, ExecuteLimits, Script } from "../src/execute/engine.ts";
import { createInvokeTool, type InvokeTool } from "../src/execute/invoke-tool.ts";
import { createMontyEngine, type MontyEngine } from "../src/execute/monty/create-monty-engine.ts";
import { runExecute, toExecuteJson, type ExecuteAnswer, type ExecuteOptions } from "../src/execute/run-execute.ts";
import { createLocalSource } from "../src/tools/create-local-source.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";

let monty: MontyEngine;
beforeAll(async () => {
  monty = createMontyEngine({ poolSize: 1 });
  await monty.warm();
});
afterAll(() => monty.close());

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));
const catalog = createToolCatalog({
  sources: [
    createLocalSource([
      {
        name: "get_price",
        description: "A price.",
        inputSchema: { type: "object", properties: { symbol: { type: "string" } }, required: ["symbol"], additionalProperties: false },
        annotations: { readOnlyHint: true },
        execute: ({ symbol }) => ({ symbol, price: 10.5 }),
      },
      { name: "echo", description: "Gives back what it gets.", annotations: { readOnlyHint: true }, execute: (args) => args },
      {
        name: "slow",
        description: "Takes its time.",
        annotations: { readOnlyHint: true },
        execute: async ({ ms }) => {
          await pause(Number(ms));
          return { waited: ms };
        },
      },
      {
        name: "broken",
        description: "Always fails.",
        execute: () => {
          throw new RangeError("out of ideas");
        },
      },
      {
        name: "large",
        description: "Many rows.",
        execute: ({ rows }) => Array.from({ length: Number(rows) }, (_, id) => ({ id, name: `row ${id}` })),
      },
    ]),
  ],
});
const invoke = createInvokeTool({ catalog, policy: createToolPolicy() });

/** A complete tool error; fields that are not given have their usual values. */
function failed(told: Partial<ToolError> & Pick<ToolError, "summary">): ToolError {
  return {
    error_kind: "sandbox_runtime",
    tool: "execute",
    details: [],
    hints: [],
    examples: [],
    error_code: "SANDBOX_RUNTIME_ERROR",
    retryable: false,
    _envelope_version: 1,
    ...told,
  };
}

/** The details of an exception that one line of a script raised. */
function at(line: number, issue: string, source: string, exception: string): ToolError["details"][number] {
  const traceback = `Traceback (most recent call last):\n  line ${line}, in <module>\n    ${source}\n${exception}`;
  return { path: "code", issue, received_type: "python", line, column: 1, traceback };
}

async function execute(code: string, options: Partial<ExecuteOptions> = {}): Promise<ExecuteAnswer> {
  return runExecute({ code, engines: { monty }, evidence: createEvidenceStore({}), invoke, ...options });
}

async function valueOf(code: string, options: Partial<ExecuteOptions> = {}): Promise<unknown> {
  const { status, resultJson, error } = await execute(code, options);
  expect(error).toBeUndefined();
  expect(status).toBe("ok");
  return JSON.parse(resultJson);
}

describe("a script", () => {
  it("returns an answer with everything that happened", async () => {
    const answer = await execute('print("hello")\nprice = await call_tool("get_price", {"symbol": "A"})\nreturn price["price"] * 2');
    expect(answer).toEqual({
      status: "ok",
      resultJson: "21",
      prints: "hello\n",
      aliases: [{ alias: "get_price_1", tool: "local__get_price", bytes: 27 }],
      warnings: [],
      engine: "monty",
      toolCalls: 1,
      timing: { executionMs: expect.any(Number) as number, totalMs: expect.any(Number) as number },
    });
    expect(JSON.parse(toExecuteJson(answer))).toMatchObject({ status: "ok", result: 21, prints: "hello\n", engine: "monty" });
  });

  it.each<[code: string, json: string]>([
    ["return 1", "1"],
    ["1 + 1", "2"],
    ["x = 1", "null"],
    ["{1: 'a', None: 2, True: 3, (1, 2): 4, 1.5: 5}", '{"true":3,"null":2,"[1,2]":4,"1.5":5}'],
    ["(1, [2], {3})", "[1,[2],[3]]"],
    ["[2**53 + 1, -(10**30)]", `[9007199254740993,${-(10n ** 30n)}]`],
    [
      "import datetime as d\n[d.datetime(2024, 1, 2, 3, 4, 5, 6), d.date(2024, 1, 2), d.timedelta(seconds=90)]",
      '["2024-01-02T03:04:05.000006","2024-01-02",90]',
    ],
    ["import datetime as d\nd.datetime(2024, 1, 2, tzinfo=d.timezone(d.timedelta(hours=-3, minutes=-30)))", '"2024-01-02T00:00:00-03:30"'],
    ["b'caf\\xc3\\xa9'", '"café"'],
    ["'a\\n\"é😀'", '"a\\n\\"é😀"'],
    ["[ValueError('x'), int]", `["ValueError: x","<class 'int'>"]`],
    ["async def main():\n    return 5\nawait main()", "5"],
    ["import asyncio\nasync def main():\n    return 5\nasyncio.run(main())", "5"],
  ])("%j gives %s", async (code, json) => {
    expect(await execute(code)).toMatchObject({ resultJson: json, warnings: [] });
  });

  it("gets warnings for values without a JSON form", async () => {
    expect(await execute("[float('nan'), float('inf'), b'\\xff', {1: 2, '1': 3}]")).toMatchObject({
      resultJson: '[null,null,"/w==",{"1":3}]',
      warnings: [
        "nan and inf have no JSON form; they are null in the result.",
        "bytes that are not UTF-8 text are in the result as base64.",
        'Two keys of a dict have the same text "1"; the last one is in the result.',
      ],
    });
  });

  it("keeps floats and long integers of a tool answer exact", async () => {
    const exact: InvokeTool = async ({ evidence }) => {
      const structuredJson = '{"id":9007199254740993,"f":1.0}';
      const item = await evidence.keep({ tool: "s__t", arguments: {}, output: { structuredContent: {} }, as: "mcp", structuredJson });
      return { ok: true, item, aliases: [item.alias], warnings: [] };
    };
    expect(await execute("r = await call_tool('t')\n[r['id'], r['id'] % 10, str(r['f'])]", { invoke: exact })).toMatchObject({
      resultJson: '[9007199254740993,3,"1.0"]',
    });
  });

  it("gets a preview and an alias for a large result", async () => {
    const evidence = createEvidenceStore({});
    const answer = await execute("await call_tool('large', {'rows': 5000})", { evidence });
    const bytes = evidence.get("result_1")?.bytes ?? 0;
    expect(bytes).toBeGreaterThan(64 * 1024);
    expect(answer).toMatchObject({
      status: "ok",
      resultAlias: "result_1",
      warnings: [`The result has ${bytes} bytes, so this is a preview. result_1 is the whole result, for code_interpreter.`],
    });
    expect(answer.resultJson.length).toBeLessThan(10_000);
    expect(answer.aliases).toEqual([{ alias: "large_1", tool: "local__large", bytes }]);
  });

  it("has the middle of its printed text cut", async () => {
    const { prints, warnings } = await execute("print('begin')\nfor i in range(20000):\n    print('line', i)\nprint('end')");
    expect(Buffer.byteLength(prints)).toBeLessThanOrEqual(64 * 1024);
    expect(prints).toMatch(/^begin\nline 0\n[\s\S]*line 19999\nend\n$/);
    expect(warnings).toEqual([
      expect.stringMatching(/^\d+ bytes were cut from the middle of prints\. Return data as the result instead\.$/),
    ]);
  });

  it("gets a warning for calls that it did not await", async () => {
    expect(await execute("call_tool('echo', {})\n1")).toMatchObject({
      resultJson: "1",
      toolCalls: 1,
      warnings: ['The result of call_tool("echo") was never awaited and is lost. Write await call_tool(...).'],
    });
  });
});

describe("call_tool", () => {
  it("runs concurrently inside gather, sixteen at a time", async () => {
    let running = 0;
    let most = 0;
    const counted: InvokeTool = async ({ args }) => {
      running += 1;
      most = Math.max(most, running);
      await pause(10);
      running -= 1;
      return { ok: true, json: JSON.stringify(args["i"]) };
    };
    const code = "import asyncio\nawait asyncio.gather(*[call_tool('t', {'i': i}) for i in range(40)])";
    expect(await valueOf(code, { invoke: counted })).toEqual(Array.from({ length: 40 }, (_, index) => index));
    expect(most).toBe(16);
  });

  it("lets tasks continue while others wait, also in nested gathers", async () => {
    const order: string[] = [];
    const traced: InvokeTool = async ({ name, args }) => {
      order.push(`${name} begins`);
      await pause(Number(args["ms"]));
      order.push(`${name} ends`);
      return { ok: true, json: JSON.stringify(name) };
    };
    const code = `import asyncio
async def two(name):
    first = await asyncio.gather(call_tool(name + '1', {'ms': 20}), call_tool(name + '2', {'ms': 20}))
    second = await call_tool(name + '3', {'ms': 20})
    return first + [second]
await asyncio.gather(two('a'), two('b'), call_tool('long', {'ms': 400}))`;
    expect(await valueOf(code, { invoke: traced })).toEqual([["a1", "a2", "a3"], ["b1", "b2", "b3"], "long"]);
    expect(order.at(-1)).toBe("long ends");
    expect(order.slice(0, 5)).toEqual(
      ["long begins", "a1 begins", "a2 begins", "b1 begins", "b2 begins"].sort((a, b) => order.indexOf(a) - order.indexOf(b)),
    );
  });

  it("raises the error of a tool, catchable in each task of a gather", async () => {
    const code = `import asyncio, json
async def one(name, params):
    try:
        return await call_tool(name, params)
    except RuntimeError as e:
        try:
            return json.loads(str(e))["error_code"]
        except ValueError:
            return str(e)
await asyncio.gather(one("get_price", {"symbol": "A"}), one("get_price", {}), one("get_prize", {}), one("broken", {}))`;
    expect(await valueOf(code)).toEqual([{ symbol: "A", price: 10.5 }, "SCHEMA_REQUIRED", "TOOL_NOT_FOUND", "RangeError: out of ideas"]);
  });

  it("returns an uncaught envelope unchanged", async () => {
    const { error } = await execute("await call_tool('get_prize', {})");
    expect(error).toEqual(
      failed({
        error_kind: "tool_not_found",
        error_code: "TOOL_NOT_FOUND",
        tool: "get_prize",
        summary: 'There is no tool "get_prize".',
        hints: ["Did you mean 'get_price'?", "search finds tools by what they do; there are 5."],
      }),
    );
    const { error: wrapped } = await execute(
      "try:\n    await call_tool('get_prize', {})\nexcept RuntimeError as e:\n    raise ValueError('failed: ' + str(e))",
    );
    expect(wrapped).toEqual(error);
  });

  it("wraps a failure without an envelope, with the line of the script", async () => {
    const { error } = await execute("x = 1\n\nawait call_tool('broken', {})");
    expect(error).toEqual({
      error_kind: "sandbox_runtime",
      tool: "execute",
      summary: "RuntimeError: RangeError: out of ideas (line 3)",
      details: [
        {
          path: "code",
          issue: "await call_tool('broken', {})",
          received_type: "python",
          line: 3,
          column: 1,
          traceback:
            "Traceback (most recent call last):\n  line 3, in <module>\n    await call_tool('broken', {})\nRuntimeError: RangeError: out of ideas",
        },
      ],
      hints: [],
      examples: [],
      error_code: "SANDBOX_RUNTIME_ERROR",
      retryable: false,
      _envelope_version: 1,
    });
  });

  it("raises an envelope inside the script above the call limit", async () => {
    const code = `import json
done = 0
try:
    for i in range(10):
        await call_tool("echo", {"i": i})
        done += 1
except RuntimeError as e:
    return [done, json.loads(str(e))["error_code"], json.loads(str(e))["summary"]]`;
    expect(await valueOf(code, { limits: { toolCalls: 3 } })).toEqual([
      3,
      "SANDBOX_TOOL_CALL_LIMIT",
      "A script may make 3 tool calls. This call was refused.",
    ]);
  });

  it("ends a script that starts thousands of calls and awaits none", async () => {
    const { error } = await execute("while True:\n    call_tool('echo', {})");
    expect(error).toEqual(
      failed({
        error_code: "SANDBOX_TOOL_CALL_LIMIT",
        summary: "The script requested far more tool calls than its limit of 50.",
        details: [{ path: "toolCalls", issue: expect.stringMatching(/^\d{4} of 50$/) as string, received_type: "number" }],
        hints: ["Request more items per call, or continue in another execute call."],
      }),
    );
  });

  it.each<[params: string, summary: string, issue: string, received_type: string, hint: string]>([
    [
      "{'x': float('nan')}",
      "The parameters contain nan or inf, which have no JSON form.",
      "is nan or inf",
      "number",
      "Send null, or leave the parameter out.",
    ],
    [
      "[1]",
      "The parameters of call_tool must be a dict, not array.",
      "must be a dict",
      "array",
      'Write await call_tool(name, {"parameter": value}).',
    ],
    [
      `{'x': ${"[".repeat(150)}${"]".repeat(150)}}`,
      "The parameters are nested more than 100 levels deep.",
      "is nested too deeply",
      "object",
      "Send flatter parameters.",
    ],
    [
      "{'id': 2**53 + 1}",
      "The integer 9007199254740993 is past 2^53 and would lose digits on the way to the tool.",
      "is past 2^53",
      "number",
      "Send long identifiers as strings: str(value).",
    ],
  ])("refuses %s before any call", async (params, summary, issue, received_type, hint) => {
    const answer = await execute(`await call_tool('echo', ${params})`);
    expect(answer.error).toEqual(
      failed({
        error_kind: "mcp_input_validation",
        error_code: "SCHEMA_TYPE_MISMATCH",
        tool: "echo",
        summary,
        details: [{ path: "params", issue, received_type }],
        hints: [hint],
      }),
    );
    expect(answer.aliases).toEqual([]);
  });

  it("does not count waiting towards the computing limit", async () => {
    const answer = await execute("await call_tool('slow', {'ms': 700})\nawait call_tool('slow', {'ms': 700})\n'done'", {
      limits: { executionMs: 1_200 },
    });
    expect(answer).toMatchObject({ status: "ok", resultJson: '"done"' });
    expect(answer.timing.executionMs).toBeLessThan(1_200);
    expect(answer.timing.totalMs).toBeGreaterThan(1_390);
  });

  it("counts waiting towards the total limit, and aborts the tool", async () => {
    const seen = Promise.withResolvers<AbortSignal>();
    const stuck: InvokeTool = ({ signal }) => {
      seen.resolve(signal);
      return new Promise(() => {});
    };
    const { error } = await execute("await call_tool('t')", { invoke: stuck, limits: { totalMs: 300 } });
    expect(error).toEqual(
      failed({
        error_code: "SANDBOX_TIMEOUT",
        summary: "The script reached its total time limit of 300 ms. Waiting for tools counts.",
        details: [{ path: "totalMs", issue: expect.stringMatching(/^\d+ of 300$/) as string, received_type: "number" }],
        hints: [
          "Run calls concurrently with asyncio.gather.",
          "Do not poll: return after one status check, and check again in a later call.",
        ],
      }),
    );
    expect((await seen.promise).aborted).toBe(true);
  });
});

describe("a failure", () => {
  it.each<[title: string, code: string, expected: ToolError, limits?: Partial<ExecuteLimits>]>([
    [
      "blocked import",
      "import math\nimport requests",
      failed({
        error_code: "SANDBOX_MODULE_BLOCKED",
        summary: "The module requests is not available here.",
        details: [at(2, "import of requests", "import requests", "ModuleNotFoundError: No module named 'requests'")],
        hints: [
          "There is no network here: get data with await call_tool(name, params).",
          "If the script works without the module, catch ImportError.",
        ],
      }),
    ],
    [
      "unsupported syntax",
      "x = 1\nclass A:\n    pass",
      failed({
        summary: "NotImplementedError: The monty syntax parser does not yet support class definitions (line 2)",
        details: [{ path: "code", issue: "not supported by the interpreter", received_type: "python", line: 2, column: 1 }],
        hints: [
          "Nothing was run. Use functions, dicts, if/elif and comprehensions; classes, match, del, yield, async for and async with are not supported.",
        ],
      }),
    ],
    [
      "wrong syntax",
      "x = 1\ny = (",
      failed({
        summary: "SyntaxError: unexpected EOF while parsing (line 2)",
        details: [{ path: "code", issue: "invalid Python", received_type: "python", line: 2, column: 6 }],
        hints: ["Nothing was run. Fix the syntax and send the whole script again."],
      }),
    ],
    [
      "unknown name",
      "x = 1\nfoo(1)",
      failed({
        summary: "NameError: name 'foo' is not defined (line 2)",
        details: [at(2, "foo(1)", "foo(1)", "NameError: name 'foo' is not defined")],
      }),
    ],
    [
      "advice",
      "'{}'.format(1)",
      failed({
        summary: "AttributeError: 'str' object has no attribute 'format' (line 1)",
        details: [at(1, "'{}'.format(1)", "'{}'.format(1)", "AttributeError: 'str' object has no attribute 'format'")],
        hints: ["Use an f-string: f'{value:.2f}'."],
      }),
    ],
    [
      "time",
      "while True:\n    pass",
      failed({
        error_code: "SANDBOX_TIMEOUT",
        summary: "The script reached its limit of 300 ms of computing. Waiting for tools does not count.",
        details: [{ path: "executionMs", issue: expect.stringMatching(/^\d+ of 300$/) as string, received_type: "number" }],
        hints: ["Look for a loop that does not end.", "Do long computations in code_interpreter, or let a tool filter on its side."],
      }),
      { executionMs: 300 },
    ],
    [
      "memory",
      "'a' * 10**12",
      failed({
        error_code: "SANDBOX_OUT_OF_MEMORY",
        summary: "The script needed more than 100000000 bytes of memory.",
        details: [{ path: "memoryBytes", issue: expect.stringMatching(/^1\d{12} of 100000000$/) as string, received_type: "number" }],
        hints: [
          "Keep only the fields that you need, page by page.",
          "Every tool result is kept whole under an alias, which code_interpreter can use.",
        ],
      }),
    ],
    [
      "a crash",
      "import json\nd = {}\nfor i in range(10000):\n    d = {'a': d}\njson.dumps(d)",
      failed({
        error_code: "SANDBOX_CRASHED",
        summary: expect.stringMatching(
          /^The interpreter's process died: SIG(?:SEGV|ABRT)\. Nothing else is affected: the next script gets a new process\.$/,
        ) as string,
        hints: ["Very deep nesting and unbounded recursion of coroutines cause this. Use flatter data or fewer steps."],
      }),
    ],
    [
      "a large result",
      "'a' * 20_000_000",
      failed({
        error_code: "PYTHON_OUTPUT_LIMIT",
        summary: "The result is larger than 10000000 bytes.",
        details: [{ path: "resultBytes", issue: "more than 10000000", received_type: "number" }],
        hints: ["Return a summary. Every tool result is kept whole under an alias, which code_interpreter can use."],
      }),
    ],
    [
      "a deep result",
      "d = []\nfor i in range(200000):\n    d = [d]\nd",
      failed({
        summary: "ValueError: the result is nested too deeply",
        details: [{ path: "code", issue: "ValueError: the result is nested too deeply", received_type: "python" }],
      }),
    ],
    [
      "no code",
      "  \n",
      failed({
        error_kind: "mcp_input_validation",
        error_code: "CODE_EMPTY",
        summary: "The script is empty.",
        hints: ["Send Python in `code`."],
      }),
    ],
    [
      "too much code",
      `#${"x".repeat(300_000)}`,
      failed({
        error_kind: "mcp_input_validation",
        error_code: "CODE_TOO_LONG",
        summary: "The script is larger than 262144 bytes.",
        details: [{ path: "codeBytes", issue: "300001 of 262144", received_type: "number" }],
        hints: ["Send data through tools, not in the script."],
      }),
    ],
  ])("by %s becomes an envelope", async (_, code, expected, limits = {}) => {
    const answer = await execute(code, { limits, engine: "monty" });
    expect(answer.status).toBe("error");
    expect(answer.resultJson).toBe("null");
    expect(answer.error).toEqual(expected);
    expect(parseToolError(answer.error)).toEqual(answer.error);
    expect(await valueOf("1")).toBe(1);
  });

  it("keeps the tool results from before it", async () => {
    const answer = await execute("print('a')\nawait call_tool('echo', {'x': 1})\n1 / 0");
    expect(answer).toMatchObject({
      status: "error",
      prints: "a\n",
      toolCalls: 1,
      aliases: [{ alias: "echo_1", tool: "local__echo", bytes: 7 }],
    });
    expect(answer.error).toEqual(
      failed({
        summary: "ZeroDivisionError: division by zero (line 3)",
        details: [at(3, "1 / 0", "1 / 0", "ZeroDivisionError: division by zero")],
      }),
    );
  });

  it("of an import that is caught has no effect", async () => {
    expect(await valueOf("try:\n    from collections import Counter\nexcept ImportError as e:\n    return str(e)")).toBe(
      "No module named 'collections'",
    );
  });

  it("of a host without namespaces has the reason and the way out", async () => {
    await using engine = createMontyEngine({ bwrapPath: "no-such-bwrap" });
    const { error } = await execute("1", { engines: { monty: engine } });
    expect(error).toEqual(
      failed({
        error_kind: "precondition_failed",
        error_code: "SANDBOX_UNAVAILABLE",
        summary: "Monty cannot be isolated in namespaces: the program no-such-bwrap was not found.",
        hints: [
          'Install bubblewrap (apt-get install bubblewrap) and allow user namespaces, or set isolation: "process-only" and accept that a script that breaks out of Monty has the rights of this user.',
        ],
      }),
    );
  });

  it("by an abort rejects with its reason", async () => {
    await expect(execute("while True:\n    pass", { signal: AbortSignal.timeout(200) })).rejects.toThrow("timeout");
    expect(await valueOf("1")).toBe(1);
  });
});

describe("the engine", () => {
  const ran: string[] = [];
  const cpython: Engine = {
    name: "cpython",
    run: ({ code }: Script): Promise<EngineOutcome> => {
      ran.push(code);
      return Promise.resolve({
        end: { kind: "value", json: '"cpython"' },
        prints: "",
        printsOmittedBytes: 0,
        unawaited: [],
        toolCalls: 0,
        executionMs: 1,
      });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };

  it.each<[code: string, reason: string]>([
    ["class A:\n    pass", "Line 1: Monty does not support class definitions."],
    ["x = 1\nmatch x:\n    case 1:\n        pass", "Line 2: Monty does not support pattern matching (match statements)."],
    ["x = 1\ndel x", "Line 2: Monty does not support the 'del' statement."],
    ["f'{1000:,}'", "Line 1: Invalid format specifier ',': ',' (comma thousands separator) is not yet supported in Monty."],
    ["from collections import Counter\nCounter('a')", "Line 1 imports collections, which Monty does not have."],
    ["def f():\n    import statistics", "Line 2 imports statistics, which Monty does not have."],
    ["from urllib.parse import quote", "Line 1 imports urllib.parse, which Monty does not have."],
    ["@cache\ndef f():\n    pass", "Line 1 has a decorator, which Monty does not apply."],
  ])("is CPython for %j", async (code, engineReason) => {
    expect(await execute(code, { engines: { monty, cpython } })).toMatchObject({
      resultJson: '"cpython"',
      engine: "cpython",
      engineReason,
    });
    expect(ran.at(-1)).toBe(code);
  });

  it.each([
    "1",
    "try:\n    import collections\nexcept ImportError:\n    pass\n1",
    "try:\n    import requests\nexcept ImportError:\n    1",
    "import json, re\n1",
  ])("stays Monty for %j", async (code) => {
    const answer = await execute(code, { engines: { monty, cpython } });
    expect(answer).toMatchObject({ status: "ok", engine: "monty" });
    expect(answer).not.toHaveProperty("engineReason");
  });

  it("blocks network modules and sleep if there is only Monty", async () => {
    for (const code of ["import socket", "import urllib.request", "from time import sleep"]) {
      expect(await execute(code, { engines: { monty, cpython }, engine: "monty" })).toMatchObject({
        engine: "monty",
        error: { error_code: "SANDBOX_MODULE_BLOCKED" },
      });
    }
  });

  it("is the configured one", async () => {
    expect(await execute("class A: pass", { engines: { monty, cpython }, engine: "monty" })).toMatchObject({
      engine: "monty",
      status: "error",
    });
    expect(await execute("1", { engines: { monty, cpython }, engine: "cpython" })).toMatchObject({ engine: "cpython", status: "ok" });
    expect((await execute("1", { engine: "cpython" })).error).toEqual(
      failed({
        error_kind: "precondition_failed",
        error_code: "SANDBOX_UNAVAILABLE",
        summary: "The engine is set to cpython, which is not available here.",
        hints: ["Set engine to auto or monty, or prepare a sandbox (`sluice doctor` shows what is missing)."],
      }),
    );
  });

  it("is Monty if there is no CPython, and the failure says what to write", async () => {
    const answer = await execute("import collections");
    expect([answer.engine, answer.error]).toEqual([
      "monty",
      failed({
        error_code: "SANDBOX_MODULE_BLOCKED",
        summary: "The module collections is not available here.",
        details: [at(1, "import of collections", "import collections", "ModuleNotFoundError: No module named 'collections'")],
        hints: [
          "Use built-ins and comprehensions: dict.setdefault, sorted, sum, zip, nested loops.",
          "If the script works without the module, catch ImportError.",
        ],
      }),
    ]);
  });
});

it("lets scripts read the table of error codes", async () => {
  expect(await valueOf("await call_tool('get_envelope_contract')")).toEqual(getEnvelopeContract());
  expect(getEnvelopeContract().error_kinds.map(({ error_kind }) => error_kind)).toEqual(Object.keys(errorKinds));
});
