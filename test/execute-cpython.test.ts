import { readdir, readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Runtime } from "../src/create-runtime.ts";
import { defaultExecuteLimits, type CallTool, type EngineOutcome, type ExecuteLimits } from "../src/execute/engine.ts";
import { createCpythonEngine } from "../src/execute/cpython/create-cpython-engine.ts";
import type { Lease } from "../src/sandbox/contract.ts";
import { openTestRuntime, testedDrivers } from "./test-runtime.ts";

/** Finds the worker's own connection to the monitor, and speaks its language. */
const forge = `
import json, os, stat, struct
def own_socket():
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) > 2 and stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                return int(name)
        except OSError:
            pass
    raise RuntimeError("there is no socket to misuse")
def frame(header, body=b""):
    head = json.dumps(header).encode()
    return struct.pack(">III", 0x534C5501, len(head), len(body)) + head + body
def send(data):
    os.write(own_socket(), data)
`;

const toolError = JSON.stringify({ error_kind: "rate_limited", error_code: "UPSTREAM_HTTP_429", retryable: true });

describe.each(testedDrivers)("the CPython engine on %s", (driver) => {
  let runtime: Runtime;
  const leases: Lease[] = [];
  beforeAll(async () => {
    runtime = openTestRuntime(driver);
    await (await runtime.driver()).prepare({ snapshot: await runtime.snapshot() });
  }, 120_000);
  afterAll(async () => {
    await engine[Symbol.asyncDispose]();
    await runtime.close();
  }, 60_000);

  const engine = createCpythonEngine({
    take: async ({ limits, signal }) => {
      const taken = await (await runtime.pool(signal)).take({ limits, signal });
      leases.push(taken.lease);
      return taken;
    },
  });

  interface Asked {
    limits?: Partial<ExecuteLimits>;
    callTool?: CallTool;
    signal?: AbortSignal;
  }

  async function run(code: string, { limits, callTool = echo, signal }: Asked = {}): Promise<EngineOutcome> {
    return await engine.run({ code, limits: { ...defaultExecuteLimits, ...limits }, callTool, signal });
  }

  async function valueOf(code: string, asked: Asked = {}): Promise<unknown> {
    const { end } = await run(code, asked);
    expect(end).toEqual({ kind: "value", json: expect.any(String) });
    return end.kind === "value" ? JSON.parse(end.json) : undefined;
  }

  const echo: CallTool = async ({ name, paramsJson }) => ({ ok: true, json: `{"tool":${JSON.stringify(name)},"params":${paramsJson}}` });
  /** Replies only when its signal aborts. */
  const silent: CallTool = async ({ signal }) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    return { ok: false, message: "given up" };
  };

  const scripts: Record<string, [code: string, value: unknown]> = {
    "a class": ["class Point:\n    def __init__(self, x):\n        self.x = x\nPoint(3).x", 3],
    "a dataclass": ["from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nP(4)", { x: 4 }],
    match: ["match {'kind': 'a', 'n': 2}:\n    case {'kind': 'a', 'n': n}:\n        found = n\nfound", 2],
    del: ["d = {'a': 1, 'b': 2}\ndel d['a']\nd", { b: 2 }],
    "a generator": ["def count(n):\n    for i in range(n):\n        yield i\nlist(count(3))", [0, 1, 2]],
    collections: ["from collections import Counter\nCounter('aab')", { a: 2, b: 1 }],
    "pure parts of urllib": ["from urllib.parse import quote\nimport urllib.parse\nquote('a b') + urllib.parse.quote('c d')", "a%20bc%20d"],
    "import *": ["from math import *\nfloor(pi)", 3],
    return: ["for i in range(9):\n    if i == 4:\n        return {'at': i}\n'never'", { at: 4 }],
    "await on its own level": ["(await call_tool('t', {'a': [1, 2.5]}))['params']", { a: [1, 2.5] }],
    "asyncio.run": ["import asyncio\nasync def main():\n    return await call_tool('t')\nasyncio.run(main())['tool']", "t"],
    "asyncio.run beside await": [
      "import asyncio\nasync def main():\n    return await call_tool('b')\n[(await call_tool('a'))['tool'], asyncio.run(main())['tool'], (await call_tool('c'))['tool']]",
      ["a", "b", "c"],
    ],
    "a global that a function changes": ["total: int = 1\ndef add():\n    global total\n    total += 1\nadd()\ntotal", 2],
    "a future import": ["from __future__ import annotations\nx: Unknown = 1\nx", 1],
    "an async comprehension": ["async def numbers():\n    yield 1\n    yield 2\n[n async for n in numbers()]", [1, 2]],
    "the guard of a module": ["if __name__ == '__main__':\n    x = 'main'\nx", "main"],
    "pandas, when it is imported": ["import pandas as pd\npd.DataFrame({'a': [1, 2]})", [{ a: 1 }, { a: 2 }]],
    "an assignment at the end": ["x = 1", null],
    nothing: ["", null],
  };
  it.each(Object.keys(scripts))("runs %s", async (name) => {
    const [code, value] = scripts[name]!;
    expect(await valueOf(code)).toEqual(value);
  });

  it("has call_tool in scope, and no names of code_interpreter", async () => {
    expect(await valueOf("sorted(name for name in globals() if not name.startswith('__'))")).toEqual(["call_tool"]);
  });

  it("converts results like cells do, with a warning for values that became null", async () => {
    const outcome = await run("import datetime\n{'n': float('nan'), 'big': 2**70, 'd': datetime.date(2026, 1, 2), 's': {3, 1}, 'f': 1.0}");
    expect(outcome).toEqual({
      end: { kind: "value", json: '{"n":null,"big":1180591620717411303424,"d":"2026-01-02","s":[1,3],"f":1.0}' },
      prints: "",
      printsOmittedBytes: 0,
      unawaited: [],
      toolCalls: 0,
      executionMs: expect.any(Number),
      warnings: ["nan and inf have no JSON form; they are null in the result."],
    });
  });

  it("passes JSON texts unchanged in both directions", async () => {
    const seen: string[] = [];
    const callTool: CallTool = async ({ paramsJson }) => {
      seen.push(paramsJson);
      return { ok: true, json: '[1.0,12345678901234567890,"\\ud83d\\ude00 é"]' };
    };
    const { end } = await run("await call_tool('t', {'x': 2.0, 'n': 2**64, 'é': '😀'})", { callTool });
    expect(seen).toEqual(['{"x":2.0,"n":18446744073709551616,"é":"😀"}']);
    expect(end).toEqual({ kind: "value", json: '[1.0,12345678901234567890,"😀 é"]' });
  });

  it("leaves it to the host to refuse params that are not a dict or have no JSON form", async () => {
    const seen: string[] = [];
    const callTool: CallTool = async ({ paramsJson }) => {
      seen.push(paramsJson);
      return { ok: true, json: "1" };
    };
    await run("for params in [[1], [], 'x', 0, {'x': float('nan')}, {'x': [float('inf')]}, None]:\n    await call_tool('t', params)", {
      callTool,
    });
    expect(seen).toEqual(["[1]", "[]", '"x"', "0", "NaN", "NaN", "{}"]);
  });

  it("runs gathered calls concurrently, up to the limit", async () => {
    let running = 0;
    let most = 0;
    const callTool: CallTool = async ({ paramsJson }) => {
      running += 1;
      most = Math.max(most, running);
      await wait(20);
      running -= 1;
      return { ok: true, json: paramsJson };
    };
    const code =
      "import asyncio\nrows = await asyncio.gather(*[call_tool('t', {'i': i}) for i in range(100)])\n[row['i'] for row in rows] == list(range(100))";
    const outcome = await run(code, { callTool, limits: { toolCalls: 100 } });
    expect(outcome).toMatchObject({ end: { kind: "value", json: "true" }, toolCalls: 100, unawaited: [] });
    expect(most).toBe(16);
  });

  it("receives many large answers while the script prints, without a deadlock", async () => {
    const callTool: CallTool = async () => ({ ok: true, json: JSON.stringify("x".repeat(1_000_000)) });
    const code = `
import asyncio
calls = [call_tool('t', {'i': i}) for i in range(12)]
for i in range(3000):
    print('y' * 100)
answers = await asyncio.gather(*calls)
[len(a) for a in answers]`;
    expect(await valueOf(code, { callTool })).toEqual(Array.from({ length: 12 }, () => 1_000_000));
  });

  it("raises the error of a tool as RuntimeError, which a script can catch", async () => {
    const callTool: CallTool = async (call) => (call.name === "bad" ? { ok: false, message: toolError } : await echo(call));
    const code = `
import asyncio, json
try:
    await call_tool('bad', {})
except RuntimeError as e:
    caught = json.loads(str(e))['error_code']
async def safe(name):
    try:
        return (await call_tool(name))['tool']
    except RuntimeError as e:
        return json.loads(str(e))['error_kind']
[caught, *await asyncio.gather(safe('a'), safe('bad'), safe('b'))]`;
    expect(await valueOf(code, { callTool })).toEqual(["UPSTREAM_HTTP_429", "a", "rate_limited", "b"]);
  });

  it("reports an uncaught exception with the line of the script", async () => {
    const { end } = await run("rows = []\ndef first(rows):\n    return rows[0]\nprint('before')\nfirst(rows)");
    expect(end).toEqual({
      kind: "exception",
      type: "IndexError",
      message: "list index out of range",
      line: 3,
      column: 12,
      sourceLine: "    return rows[0]",
      traceback:
        'Traceback (most recent call last):\n  File "<script>", line 5, in <module>\n    first(rows)\n    ~~~~~^^^^^^\n  File "<script>", line 3, in first\n    return rows[0]\n           ~~~~^^^\nIndexError: list index out of range\n',
    });
  });

  it("reports an uncaught tool failure completely, with the line of the call", async () => {
    const { end } = await run("x = 1\nawait call_tool('bad')", { callTool: async () => ({ ok: false, message: toolError }) });
    expect(end).toMatchObject({
      kind: "exception",
      type: "RuntimeError",
      message: toolError,
      line: 2,
      sourceLine: "await call_tool('bad')",
    });
  });

  const noModule = (name: string): string =>
    `No module named '${name}'. The sandbox has no network: compute with data that tools have already fetched.`;
  const failures: Record<string, [code: string, end: unknown]> = {
    "a network module": ["import socket", { kind: "exception", type: "ModuleNotFoundError", message: noModule("socket"), line: 1 }],
    "a part of one": [
      "x = 1\nimport urllib.request",
      { kind: "exception", type: "ModuleNotFoundError", message: noModule("urllib.request"), line: 2 },
    ],
    "what is not installed": ["import requests", { kind: "exception", type: "ModuleNotFoundError", message: noModule("requests") }],
    "asyncio.sleep": [
      "import asyncio\nawait asyncio.sleep(1)",
      { kind: "exception", type: "AttributeError", message: "module 'asyncio' has no attribute 'sleep'", line: 2 },
    ],
    "a syntax error": ["x = 1\ndef f(:", { kind: "syntax", unsupported: false, message: "invalid syntax", line: 2, column: 7 }],
    "yield outside a function": [
      "yield 1",
      { kind: "syntax", unsupported: false, message: "'yield' outside function", line: 1, column: 1 },
    ],
    "a syntax error at run time": ["eval('1 +')", { kind: "exception", type: "SyntaxError", message: "invalid syntax" }],
    "a result without a JSON form": ["lambda: 1", { kind: "exception", type: "ResultError" }],
    "a result that was not awaited": [
      "async def main():\n    return 1\nmain()",
      {
        kind: "exception",
        type: "ResultError",
        message: "the result is a coroutine that was never awaited; write `await` before the call",
      },
    ],
    "params over their limit": [
      "await call_tool('t', {'x': 'y' * 5_000_000})",
      {
        kind: "exception",
        type: "ValueError",
        message: expect.stringMatching(/^call_tool\(name, params\): params has \d+ bytes of JSON or more, 4194304 are allowed$/),
      },
    ],
    exit: ["import sys\nsys.exit(3)", { kind: "exception", type: "SystemExit" }],
    "an end of its process": [
      "import os\nos._exit(3)",
      {
        kind: "crashed",
        detail: "The process that ran the script exited with status 3 (os._exit, or its channel was closed).",
      },
    ],
    "a crash": [
      "import ctypes\nctypes.string_at(0)",
      { kind: "crashed", detail: "The process that ran the script was killed by SIGSEGV (signal 11)." },
    ],
  };
  it.each(Object.keys(failures))("reports %s", async (name) => {
    const [code, end] = failures[name]!;
    expect((await run(code)).end).toMatchObject(end as object);
  });

  it("lets a script catch a blocked import", async () => {
    const code = "try:\n    import httpx\n    found = True\nexcept ImportError as e:\n    found = str(e)\nfound";
    expect(await valueOf(code)).toBe("No module named 'httpx'");
  });

  it("names calls that were never awaited, and aborts them", async () => {
    let givenUp = false;
    const callTool: CallTool = async (call) => {
      if (call.name !== "forgotten") return await echo(call);
      const reply = await silent(call);
      givenUp = true;
      return reply;
    };
    const outcome = await run("call_tool('forgotten', {})\nawait call_tool('t')\ncall_tool('forgotten')\n'done'", { callTool });
    expect(outcome).toMatchObject({
      end: { kind: "value", json: '"done"' },
      unawaited: ["forgotten", "forgotten"],
      toolCalls: 3,
      prints: "",
    });
    expect(givenUp).toBe(true);
  });

  it("returns printed text separately, and cuts its middle", async () => {
    const outcome = await run("import sys\nprint('first')\nprint('é' * 100_000)\nprint('last', file=sys.stderr)\n1", {
      limits: { printBytes: 1000 },
    });
    expect(outcome.end).toEqual({ kind: "value", json: "1" });
    expect(outcome.prints).toMatch(/^first\né+.*é+\nlast\n$/s);
    expect(Buffer.byteLength(outcome.prints)).toBeLessThan(1010);
    expect(outcome.printsOmittedBytes).toBe(200_012 - 1000);
  });

  it("ends an endless loop at the time limit, and keeps the printed text", async () => {
    const outcome = await run("print('on')\nwhile True:\n    pass", { limits: { executionMs: 700 } });
    expect(outcome.end).toEqual({ kind: "limit", limit: "executionMs", allowed: 700, seen: expect.any(Number) });
    expect(outcome.prints).toBe("on\n");
  });

  it("does not count waiting for tools, except for what the script computes meanwhile", async () => {
    const slow: CallTool = async () => {
      await wait(1_500);
      return { ok: true, json: "1" };
    };
    expect(await valueOf("await call_tool('slow')", { callTool: slow, limits: { executionMs: 1_000 } })).toBe(1);
    const computing = await run("call_tool('slow')\nwhile True:\n    pass", { callTool: silent, limits: { executionMs: 1_000 } });
    expect(computing.end).toMatchObject({ kind: "limit", limit: "executionMs", allowed: 1_000 });
  });

  it("ends a script that waits for a tool at the total limit, and aborts the call", async () => {
    let reason: unknown;
    const callTool: CallTool = async (call) => {
      const reply = await silent(call);
      reason = call.signal.reason;
      return reply;
    };
    const outcome = await run("await call_tool('never')", { callTool, limits: { totalMs: 500 } });
    expect(outcome.end).toEqual({ kind: "limit", limit: "totalMs", allowed: 500, seen: expect.any(Number) });
    expect(reason).toEqual(new Error("the script that made this call has ended"));
  });

  it("ends a script that starts calls endlessly", async () => {
    const outcome = await run("while True:\n    call_tool('t')", { callTool: silent, limits: { toolCalls: 5 } });
    expect(outcome.end).toEqual({ kind: "limit", limit: "toolCalls", allowed: 5, seen: 1005 });
  });

  it("stops reading while a script floods the host with params, and still ends it", async () => {
    let seen = 0;
    const callTool: CallTool = async (call) => {
      seen += call.paramsJson.length;
      return await silent(call);
    };
    const code = "text = 'x' * 3_000_000\nwhile True:\n    call_tool('t', {'text': text})";
    const limits = { totalMs: 4_000, concurrentToolCalls: 1_000, toolCalls: 1_000 };
    expect((await run(code, { callTool, limits })).end).toMatchObject({ kind: "limit", limit: "totalMs" });
    expect(seen).toBeLessThan(40 * 1024 * 1024);
  });

  it("refuses code and results over their limits", async () => {
    expect((await run("1".repeat(20), { limits: { codeBytes: 10 } })).end).toEqual({
      kind: "limit",
      limit: "codeBytes",
      allowed: 10,
      seen: 20,
    });
    expect((await run("'x' * 200", { limits: { resultBytes: 100 } })).end).toEqual({
      kind: "limit",
      limit: "resultBytes",
      allowed: 100,
      seen: 202,
    });
  });

  const greedy: Record<string, string> = {
    "one giant allocation": "x = bytearray(10**9)",
    "many small ones": "rows = []\nwhile True:\n    rows.append('x' * 1000)",
  };
  it.each(Object.keys(greedy))("reports %s as out of memory", async (name) => {
    expect((await run(greedy[name]!)).end).toEqual({ kind: "limit", limit: "memoryBytes", allowed: 100_000_000 });
  });

  it("limits the total memory of all processes that a script starts", async () => {
    const code = `
import os, signal
children = []
for i in range(12):
    child = os.fork()
    if child == 0:
        block = bytearray(80_000_000)
        for at in range(0, len(block), 4096):
            block[at] = 1
        signal.sigwait({signal.SIGTERM})
        os._exit(0)
    children.append(child)
ended, status = os.wait()
{'by': os.WTERMSIG(status)}`;
    const { end } = await run(code);
    const sandboxEnded = { kind: "limit", limit: "memoryBytes", allowed: 100_000_000 };
    expect([sandboxEnded, { kind: "value", json: '{"by":9}' }]).toContainEqual(end);
  });

  it("leaves most of the memory limit to the script", async () => {
    expect(await valueOf("x = bytearray(60_000_000)\nfor at in range(0, len(x), 4096):\n    x[at] = 1\nlen(x)")).toBe(60_000_000);
  });

  it("reports the loss of a sandbox while a tool call is pending, and aborts the call", async () => {
    let givenUp = false;
    const callTool: CallTool = async ({ signal }) => {
      signal.addEventListener("abort", () => (givenUp = true), { once: true });
      await killProcessesOf(leases.at(-1)!);
      return await new Promise(() => {});
    };
    const { end } = await run("await call_tool('never')", { callTool });
    expect(end).toEqual({ kind: "crashed", detail: expect.stringMatching(/gone|died/) });
    expect(givenUp).toBe(true);
    expect(await valueOf("1 + 1")).toBe(2);
  });

  it("rejects with the abort reason, aborts calls and leaves no sandbox", async () => {
    const stop = new AbortController();
    let givenUp = false;
    const pending: CallTool = async ({ signal }) => {
      const over = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      stop.abort(new Error("enough"));
      await over;
      givenUp = true;
      return { ok: false, message: "given up" };
    };
    await expect(run("await call_tool('t')", { callTool: pending, signal: stop.signal })).rejects.toThrow("enough");
    expect(givenUp).toBe(true);
    expect(await leases.at(-1)!.died).toMatchObject({ cause: "closed" });
    await expect(run("1", { signal: AbortSignal.abort(new Error("before")) })).rejects.toThrow("before");
  });

  it("gives every script its own sandbox and closes it afterwards", async () => {
    const before = leases.length;
    expect(await valueOf("open('/sandbox/left', 'w').write('x')")).toBe(1);
    expect(await valueOf("import os\n[os.path.exists('/sandbox/left'), os.listdir('/sandbox/out/images')]")).toEqual([false, []]);
    const used = leases.slice(before);
    expect(new Set(used.map(({ id }) => id)).size).toBe(2);
    expect(await Promise.all(used.map(async ({ died }) => (await died).cause))).toEqual(["closed", "closed"]);
  });

  const forgeries: Record<string, string> = {
    "a call with another number": `send(frame({"type": "call", "id": 7, "name": "t"}, b"{}"))`,
    "the same call twice": `send(frame({"type": "call", "id": 0, "name": "t"}, b"{}") * 2)`,
    "a call whose params are no text": `send(frame({"type": "call", "id": 0, "name": "t"}, b"\\xff"))`,
    "a call without a name": `send(frame({"type": "call", "id": 0}, b"{}"))`,
    "a reply": `send(frame({"type": "reply", "id": 0, "ok": True}, b"1"))`,
    "an artifact": `send(frame({"type": "artifact", "cell": 1, "kind": "image", "alt": "a line"}, b"x"))`,
    "no frame": `send(b"x" * 100)`,
  };
  it.each(Object.keys(forgeries))("kills a sandbox whose script forges %s", async (name) => {
    const called: string[] = [];
    const callTool: CallTool = async (call) => {
      called.push(call.name);
      return await silent(call);
    };
    const { end } = await run(`${forge}\n${forgeries[name]}\nimport time\ntime.sleep(20)`, { callTool });
    expect(end).toMatchObject({ kind: "crashed", detail: expect.stringMatching(/^The sandbox is gone: /) });
    expect(called.length).toBeLessThanOrEqual(1);
    expect((await leases.at(-1)!.died).cause).not.toBe("expired");
  });

  it("accepts a forged end as the end of the script, with no other effect", async () => {
    const said = `{"type": "done", "cell": 1, "status": "ok", "diagnostics": {}, "unawaited": [0, 99]}`;
    const outcome = await run(`${forge}\nsend(frame(${said}, b'"forged"'))\nwhile True:\n    pass`);
    expect(outcome).toMatchObject({ end: { kind: "value", json: '"forged"' }, unawaited: [], toolCalls: 0 });
    expect((await leases.at(-1)!.died).cause).toBe("closed");
  });

  describe("the sandbox of a cell session", () => {
    const attempts: Record<string, string> = {
      "forges a call": `send(frame({"type": "call", "id": 0, "name": "shell"}, b'{"command": "id"}'))`,
      "forges a call of its cell": `send(frame({"type": "call", "cell": 1, "id": 0, "name": "shell"}, b"{}"))`,
      "asks for script mode": `send(frame({"type": "script", "cell": 1, "rollback": "none", "limits": {}}, b"1"))`,
      "forges a reply": `send(frame({"type": "reply", "id": 0, "ok": True}, b"1"))`,
    };
    it.each(Object.keys(attempts))("is killed when a cell %s", async (name) => {
      await using session = await runtime.openCellSession();
      const outcome = await session.run({ code: `${forge}\n${attempts[name]}\nimport time\ntime.sleep(20)` });
      const kind = /"type": "(\w+)"/.exec(attempts[name]!)![1];
      expect(outcome).toMatchObject({
        status: "sandbox_lost",
        error: { type: "SandboxLost", message: expect.stringContaining(`user code sent an unexpected frame of type '${kind}'`) },
      });
      const next = await session.run({ code: "1 + 1" });
      expect(next).toMatchObject({ status: "ok", resultJson: "2" });
      expect(next.sandbox.id).not.toBe(outcome.sandbox.id);
    });

    it("has no call_tool, and cannot import one that works", async () => {
      await using session = await runtime.openCellSession();
      expect(await session.run({ code: "call_tool('t', {})" })).toMatchObject({ status: "python_error", error: { type: "NameError" } });
      const own = `${forge}
from sluice_worker.connection import Connection
from sluice_worker.script import Calls
Calls(Connection(os.dup(own_socket())), 1000).call_tool('t', {})
import time
time.sleep(20)`;
      expect(await session.run({ code: own })).toMatchObject({ status: "sandbox_lost" });
    });
  });
});

/** Kills from outside, as the kernel would. */
async function killProcessesOf({ id }: Lease): Promise<void> {
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const cgroup = await readFile(`/proc/${name}/cgroup`, "utf8").catch(() => "");
    if (!cgroup.includes(id)) continue;
    try {
      process.kill(Number(name), "SIGKILL");
    } catch {
      // it ended by itself
    }
  }
}
