import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defaultExecuteLimits, type EngineEnd } from "../src/execute/engine.ts";
import { describeExecute, montyFacts, montyModules, summarizeExecute } from "../src/prompts/describe-execute.ts";
import { createMontyEngine, type MontyEngine } from "../src/execute/monty/create-monty-engine.ts";

/** Every sentence about Monty, with scripts that prove it. A sentence that is not true for the installed version fails here. */
interface Claim {
  readonly text: string;
  readonly checks: readonly Check[];
}

interface Check {
  readonly code: string;
  readonly expect:
    | { readonly json: string }
    /** The type of an exception that is not caught. */
    | { readonly raises: string }
    /** The parser refuses the script. */
    | { readonly refused: true };
}

const gives = (code: string, json: string): Check => ({ code, expect: { json } });
const raises = (type: string, ...codes: readonly string[]): Check[] => codes.map((code) => ({ code, expect: { raises: type } }));
const refused = (...codes: readonly string[]): Check[] => codes.map((code) => ({ code, expect: { refused: true } }));

const blockedModules = [
  ...["collections", "itertools", "functools", "statistics", "decimal", "dataclasses", "random", "string", "time", "base64", "hashlib"],
  ...["urllib.parse", "csv", "io", "copy", "enum", "heapq", "uuid"],
];
const networkModules = ["urllib.request", "requests", "httpx", "socket", "http.client", "aiohttp"];

const claims: readonly Claim[] = [
  {
    text: "Top-level `await` and `return` work; without a return the final expression is the result, and a final assignment gives null.",
    checks: [gives("async def f():\n    return 2\nawait f()", "2"), gives("return 3\n4", "3"), gives("x = 5", "null")],
  },
  {
    text: "Functions, lambdas, closures, comprehensions, f-strings such as f'{x:.2f}', try/except/finally, unpacking, walrus and type hints work.",
    checks: [
      gives("def f(a, *b, c=1, **d):\n    return [a, list(b), c, d]\nf(1, 2, c=3, e=4)", '[1,[2],3,{"e":4}]'),
      gives("def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n        return n\n    g()\n    return g()\nf()", "2"),
      gives("f'{1234.567:.2f} {5:>3} {0.5:.1%}'", '"1234.57   5 50.0%"'),
      gives(
        "r = []\ntry:\n    1 / 0\nexcept ZeroDivisionError as e:\n    r.append(str(e))\nfinally:\n    r.append('done')\nr",
        '["division by zero","done"]',
      ),
      gives("a, *b = [1, 2, 3]\n[a, b, (n := 4), n, {**{'x': 1}, 'y': 2}]", '[1,[2,3],4,4,{"x":1,"y":2}]'),
      gives("sorted([{'n': 2}, {'n': 1}], key=lambda row: (row['n'], 0))", '[{"n":1},{"n":2}]'),
    ],
  },
  {
    text: "In the result a whole float loses its .0 (1.0 is 1), and values without a JSON form become text: bytes, exceptions, types.",
    checks: [gives("[1.0, 2.5, b'a', ValueError('x'), int]", '[1,2.5,"a","ValueError: x","<class \'int\'>"]')],
  },
  {
    text: `Available modules: ${montyModules.join(", ")}.`,
    checks: montyModules.map((name) => gives(`import ${name}\n1`, "1")),
  },
  {
    text: "asyncio has only gather and run: no sleep, create_task, wait_for or Semaphore. gather does not support return_exceptions: catch inside each coroutine.",
    checks: [
      gives("import asyncio\nasync def f(n):\n    return n\nawait asyncio.gather(f(1), f(2))", "[1,2]"),
      gives("import asyncio\nasync def f():\n    return 1\nasyncio.run(f())", "1"),
      ...raises(
        "AttributeError",
        ...["sleep(1)", "create_task(1)", "wait_for(1, 1)", "Semaphore(1)"].map((call) => `import asyncio\nasyncio.${call}`),
      ),
      ...raises("NotImplementedError", "import asyncio\nasync def f():\n    return 1\nawait asyncio.gather(f(), return_exceptions=True)"),
    ],
  },
  {
    text: "There is no clock, file system or environment: datetime.now(), date.today(), open() and os.environ raise; sys has no exit, os has no path.",
    checks: [
      ...raises(
        "RuntimeError",
        "import datetime\ndatetime.datetime.now()",
        "import datetime\ndatetime.date.today()",
        "import os\nos.environ",
      ),
      ...raises("PermissionError", "open('x')"),
      ...raises("AttributeError", "import sys\nsys.exit()", "import os\nos.path"),
    ],
  },
  {
    text: `Blocked modules: ${blockedModules.join(", ")}, and every other module that is not listed as available. Use built-ins and comprehensions.`,
    checks: raises("ModuleNotFoundError", ...blockedModules.map((name) => `import ${name}`)),
  },
  {
    text: `No network: ${networkModules.join(", ")} and the like are not importable. Use call_tool.`,
    checks: raises("ModuleNotFoundError", ...networkModules.map((name) => `import ${name}`)),
  },
  {
    text: "A blocked import raises a plain ImportError (ModuleNotFoundError), catchable with `except ImportError:`; it becomes an envelope only if not caught.",
    checks: [
      gives("try:\n    from collections import Counter\nexcept ImportError:\n    return 'caught'", '"caught"'),
      gives("try:\n    import decimal\nexcept ModuleNotFoundError:\n    return 'caught'", '"caught"'),
    ],
  },
  {
    text: "class, match, del, yield, async for, async with, async comprehensions, except*, `from x import *`, complex numbers, f'{x:,}' and f'{x:#x}'.",
    checks: refused(
      ...["class A:\n    pass", "match 1:\n    case 1:\n        pass", "x = 1\ndel x", "def f():\n    yield 1"],
      ...[
        "async def f():\n    async for x in y:\n        pass",
        "async def f():\n    async with x:\n        pass",
        "async def f():\n    return [x async for x in y]",
      ],
      ...["try:\n    pass\nexcept* ValueError:\n    pass", "from json import *", "1j", "x = 1000\nf'{x:,}'", "x = 255\nf'{x:#x}'"],
    ),
  },
  {
    text: "Missing builtins: object, callable, dir, vars, globals, locals, eval, exec, input, format, issubclass, bytearray, complex, super.",
    checks: raises(
      "NameError",
      ...["object()", "callable(print)", "dir()", "vars()", "globals()", "locals()", "eval('1')", "exec('1')", "input()", "format(1, 'd')"],
      ...["issubclass(bool, int)", "bytearray(b'a')", "complex(1, 2)", "super()", "__name__"],
    ),
  },
  {
    text: "Methods of built-in values can be called (d.keys()) but are not attributes: hasattr('a', 'upper') is False, 'a'.upper and f.__name__ raise. Do not probe objects; know their shape.",
    checks: [
      gives("hasattr('a', 'upper')", "false"),
      gives("'a'.upper()", '"A"'),
      ...raises("AttributeError", "'a'.upper", "print.__name__", "sorted(['b'], key=str.lower)"),
    ],
  },
  {
    text: "'{}'.format(x) and '%s' % x raise: use f-strings. For thousands separators build the text by hand.",
    checks: [...raises("AttributeError", "'{}'.format(1)"), ...raises("TypeError", "'%s' % 1")],
  },
  {
    text: "dict | dict raises: write {**a, **b}. [*range(3)] raises: write list(range(3)). x[0:1] = [...] raises: build a new list.",
    checks: [
      ...raises("TypeError", "{'a': 1} | {'b': 2}", "[*range(3)]", "x = [1, 2]\nx[0:1] = [3]"),
      gives("[{**{'a': 1}, **{'b': 2}}, list(range(3))]", '[{"a":1,"b":2},[0,1,2]]'),
    ],
  },
  {
    text: "sorted, min and max on lists raise: use tuples as keys. True + True raises: write sum(1 for x in xs if x).",
    checks: [
      ...raises("TypeError", "sorted([[2], [1]])", "max([[1], [2]])", "True + True"),
      gives("[sorted([(2, 1), (1, 2)]), sum(1 for x in [True, True] if x)]", "[[[1,2],[2,1]],2]"),
    ],
  },
  {
    text: "int(text, base), enumerate(xs, start=1), re.sub with a function, math.prod, math.hypot, json.dumps(default=), str.translate and datetime.astimezone raise; enumerate(xs, 1) works.",
    checks: [
      ...raises(
        "TypeError",
        "int('ff', 16)",
        "enumerate(['a'], start=1)",
        "import re\nre.sub('a', lambda m: 'b', 'a')",
        "import json\njson.dumps({1}, default=str)",
      ),
      ...raises("AttributeError", "import math\nmath.prod([1])", "import math\nmath.hypot(3, 4)", "'a'.translate({})"),
      ...raises("AttributeError", "import datetime as d\nd.datetime(2024, 1, 1, tzinfo=d.timezone.utc).astimezone(d.timezone.utc)"),
      gives("list(enumerate(['a'], 1))", '[[1,"a"]]'),
    ],
  },
  {
    text: "Exceptions take at most one text: ValueError('a', 'b') fails. next() on a generator expression, and `global` for a name that is new, fail too.",
    checks: [
      ...raises("RuntimeError", "ValueError('a', 'b')"),
      ...raises("TypeError", "next(x for x in [1])"),
      ...raises("NameError", "def f():\n    global z\n    z = 3\nf()\nz"),
    ],
  },
  {
    text: "<, >, <=, >= between lists or between sets are always False: [1, 2] < [1, 3], {1} < {1, 2}. Compare tuples; use a.issubset(b).",
    checks: [
      ...["[1, 2] < [1, 3]", "[2] > [1]", "[1] >= [1]", "{1} < {1, 2}", "{1} <= {1}", "(1, [2]) < (1, [3])"].map((code) =>
        gives(code, "false"),
      ),
      gives("[(1, 2) < (1, 3), {1}.issubset({1, 2})]", "[true,true]"),
    ],
  },
  { text: "frozenset([1]) == {1} is False.", checks: [gives("frozenset([1]) == {1}", "false")] },
  {
    text: "Decorators are parsed but not applied.",
    checks: [gives("def deco(f):\n    return lambda: 'decorated'\n@deco\ndef g():\n    return 'plain'\ng()", '"plain"')],
  },
  {
    text: "round(x, n) rounds ties by the decimal text: round(2.675, 2) is 2.68, in CPython 2.67. sum of floats is not compensated: sum([0.1] * 10) is 0.9999999999999999; math.fsum raises.",
    checks: [
      gives("[round(2.675, 2), round(2.5), sum([0.1] * 10)]", "[2.68,2,0.9999999999999999]"),
      ...raises("AttributeError", "import math\nmath.fsum([0.1])"),
    ],
  },
  {
    text: "% with a float and a negative number keeps the sign of the left side: -7.5 % 2 is -1.5, in CPython 0.5. int % int is right.",
    checks: [gives("[-7.5 % 2, 5.5 % -3, -7 % 3]", "[-1.5,2.5,2]")],
  },
  {
    text: "int(1e20) gives 9223372036854775807, and integers past 2**53 compare with floats as floats. str() of large and small floats has no exponent.",
    checks: [
      gives("int(1e20)", "9223372036854775807"),
      gives("9007199254740993 == 9007199254740992.0", "true"),
      gives("[str(1e16), str(1e-5), str(float('nan'))]", '["10000000000000000.0","0.00001","NaN.0"]'),
    ],
  },
  {
    text: "Generator expressions, map, zip, enumerate and reversed are evaluated at once to lists: any(f(x) for x in xs) calls f for every x.",
    checks: [
      gives("calls = []\ndef f(x):\n    calls.append(x)\n    return True\nany(f(x) for x in [1, 2, 3])\ncalls", "[1,2,3]"),
      gives("m = map(lambda x: x, [1])\nlist(m)\nlist(m)", "[1]"),
    ],
  },
];

describe("what the description says about Monty", () => {
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

  it("has at least one script for each sentence", () => {
    expect(claims.map(({ text }) => text)).toEqual(Object.values(montyFacts).flat());
    expect(claims.filter(({ checks }) => checks.length === 0)).toEqual([]);
  });
});

const failure = { error_kind: "mcp_input_validation", error_code: "TOOL_NOT_FOUND", hints: ["Call search."], retryable: false };
const exampleOf = (description: string): string => {
  const lines = description.split("\n");
  const start = lines.findIndex((line) => line.includes("error envelope")) + 1;
  const end = lines.findIndex((line, at) => at >= start && !line.startsWith("  "));
  return lines
    .slice(start, end)
    .map((line) => line.slice(2))
    .join("\n");
};

it.each([
  ["the full description", describeExecute({ limits: defaultExecuteLimits, engine: "auto", hasCpython: true, hasIdentity: true })],
  ["the description for MCP clients", summarizeExecute({ engine: "auto", hasCpython: true })],
])("the error handling in %s runs as written", async (_, description) => {
  await using engine = createMontyEngine({ poolSize: 1 });
  const code = exampleOf(description);
  const failing = await engine.run({
    code,
    limits: defaultExecuteLimits,
    callTool: async () => ({ ok: false, message: JSON.stringify(failure) }),
  });
  expect(failing.end).toEqual({
    kind: "value",
    json: JSON.stringify([failure.error_kind, failure.error_code, failure.hints, failure.retryable, {}]),
  });
  const working = await engine.run({ code, limits: defaultExecuteLimits, callTool: async () => ({ ok: true, json: "7" }) });
  expect(working.end).toEqual({ kind: "value", json: "7" });
});

function toExpectation(end: EngineEnd): Check["expect"] | EngineEnd {
  if (end.kind === "value") return { json: end.json };
  if (end.kind === "exception") return { raises: end.type };
  return end.kind === "syntax" && end.unsupported ? { refused: true } : end;
}

describe("the description", () => {
  const options = { limits: defaultExecuteLimits, engine: "auto", hasCpython: true, hasIdentity: true } as const;

  it("states the limits in force", () => {
    expect(describeExecute({ ...options, limits: { ...defaultExecuteLimits, executionMs: 7_500, toolCalls: 12 } })).toContain(
      "Limits: 7.5 s of computing (waiting for tools does not count), 5 min in total, 100 MB of memory, 12 tool calls, 16 at once, 256 KB of code, 10 MB of result, 64 KB of prints.",
    );
  });

  it("contains every sentence once", () => {
    const text = describeExecute(options);
    for (const claim of claims) expect(text.split(claim.text)).toHaveLength(2);
  });

  it("does not mention Monty if CPython is set, nor the identity tools if there are none", () => {
    expect(describeExecute({ ...options, engine: "cpython" })).not.toContain("Monty");
    expect(describeExecute({ ...options, hasIdentity: false })).not.toContain("get_session_state");
  });

  it("mentions CPython only if it is available", () => {
    expect(describeExecute(options)).toContain("runs in CPython instead");
    expect(describeExecute({ ...options, hasCpython: false })).not.toContain("runs in CPython instead");
    expect(describeExecute({ ...options, engine: "monty" })).not.toContain("runs in CPython instead");
  });

  it("is short enough to be sent with every request", () => {
    expect(describeExecute(options).length).toBeLessThan(9_000);
    for (const engine of ["auto", "monty", "cpython"] as const)
      expect(Buffer.byteLength(summarizeExecute({ engine, hasCpython: true }))).toBeLessThanOrEqual(4096);
  });

  it("gives MCP clients the guardrails and every silent difference of Monty", () => {
    const text = summarizeExecute({ engine: "auto", hasCpython: true });
    for (const fact of [...montyFacts.modules, ...montyFacts.blocked, ...montyFacts.wrong]) expect(text).toContain(fact);
    expect(text).toContain("one status check per call of execute");
    expect(summarizeExecute({ engine: "cpython", hasCpython: true })).not.toContain("Monty");
  });
});
