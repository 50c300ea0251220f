import type { EngineSetting } from "../execute/choose-engine.ts";
import type { ExecuteLimits } from "../execute/engine.ts";

/** The modules that Monty has. Importing any other raises ModuleNotFoundError. */
export const montyModules: readonly string[] = ["asyncio", "datetime", "json", "math", "os", "pathlib", "re", "sys", "typing"];

export interface ExecuteDescriptionOptions {
  readonly limits: ExecuteLimits;
  readonly engine: EngineSetting;
  readonly hasCpython: boolean;
  /** Whether there are tools for identity, region and profile. */
  readonly hasIdentity: boolean;
}

/** The description of `execute` for a model, with the limits in force. A test runs scripts on Monty that prove each sentence of `montyFacts`. */
export function describeExecute(options: ExecuteDescriptionOptions): string {
  return [
    purpose,
    toolCalls,
    describeFailures(options),
    describeLimits(options.limits),
    describeEngine(options),
    describePython(options),
    polling,
    ...(options.hasIdentity ? [identityRules] : []),
  ].join("\n\n");
}

const purpose =
  "Run async Python in a sandboxed interpreter, with backend tools in scope. The whole script runs as one turn; use return, or a final expression, to produce the result. Results are JSON values.";

const toolCalls = [
  "In scope: await call_tool(name: str, params: dict) -> Any. Calls any backend tool; find them with search, get_schema and tags.",
  "- Concurrent: await asyncio.gather(*[call_tool(...) for ...]). Await every call: the result of a call that is not awaited is lost, and a warning says so.",
  "- Every tool result is kept whole under an alias, which the answer lists under aliases: code_interpreter can use it by that name. Do not copy data; return what you need to decide.",
  "- A result over 64 KB is returned as a preview with its own alias. print() is returned as prints, separate from the result.",
  "- Integers past 2**53 cannot be sent to a tool as numbers: send long identifiers as strings.",
].join("\n");

/** Runs as written. */
const failureExample = [
  "  import json",
  "  try:",
  '      return await call_tool("get_price", {"symbol": "BTC"})',
  "  except RuntimeError as e:",
  "      env = json.loads(str(e))",
  "      return [env['error_kind'], env['error_code'], env['hints'], env['retryable'], env.get('_meta', {})]",
];

function describeFailures({ engine, hasCpython }: ExecuteDescriptionOptions): string {
  const syntax = engine === "monty" || !hasCpython ? " (also unsupported syntax)" : "";
  return [
    "A failed tool call raises RuntimeError(<envelope_json>); the message is the full v1 error envelope:",
    ...failureExample,
    'Failures without an envelope are RuntimeError("<OriginalType>: <message>"). Both are caught by `except RuntimeError:`, also inside gather. To try many candidates, give each call_tool its own try/except.',
    `If not caught, an envelope is returned unchanged, a blocked import becomes sandbox_runtime / SANDBOX_MODULE_BLOCKED, and anything else${syntax} sandbox_runtime / SANDBOX_RUNTIME_ERROR with the line. get_envelope_contract() lists all kinds and codes.`,
  ].join("\n");
}

function describeLimits(limits: ExecuteLimits): string {
  const { executionMs, totalMs, memoryBytes, toolCalls, concurrentToolCalls, codeBytes, printBytes, resultBytes } = limits;
  return `Limits: ${seconds(executionMs)} of computing (waiting for tools does not count), ${seconds(totalMs)} in total, ${bytes(memoryBytes)} of memory, ${toolCalls} tool calls, ${concurrentToolCalls} at once, ${bytes(codeBytes)} of code, ${bytes(resultBytes)} of result, ${bytes(printBytes)} of prints.`;
}

const cpythonResults = "In its results 1.0 stays 1.0, and bytes, exceptions, types and generators raise.";

function describeEngine({ engine, hasCpython }: ExecuteDescriptionOptions): string {
  if (engine === "cpython") return `Interpreter: CPython, with its standard library but no network. ${cpythonResults}`;
  if (engine === "auto" && hasCpython)
    return `Interpreter: Monty, a small Python. A script that it cannot run (the syntax below, or an import outside of try of a module that it lacks, such as collections or statistics) or would get wrong (a decorator, round(x, n), datetime.now(), or <, > or % next to an obvious list, set or float: [a, b], set(a), 1.5) runs in CPython instead, with the same call_tool and limits; the answer then has engine: cpython and the reason. ${cpythonResults} Everything below is about Monty.`;
  return "Interpreter: Monty, a small Python. Unsupported code fails.";
}

const cpythonGuardrails = "No network: urllib.request, requests, httpx, socket and asyncio.sleep are blocked. Use call_tool.";

function describePython({ engine, hasCpython }: ExecuteDescriptionOptions): string {
  if (engine === "cpython") return cpythonGuardrails;
  const unsupported =
    engine === "auto" && hasCpython
      ? "Syntax that only CPython supports (detected before anything runs): "
      : "Unsupported syntax (nothing is run): ";
  return [
    ...montyFacts.works,
    ...montyFacts.modules,
    ...montyFacts.blocked,
    unsupported + montyFacts.syntax.join(" "),
    ...montyFacts.missing,
    ...montyFacts.raises,
    "Silently different from CPython:",
    ...montyFacts.wrong.map((text) => `- ${text}`),
  ].join("\n");
}

/** Facts about Monty for a model. test/execute-description.test.ts runs scripts for each sentence on the installed version. */
export const montyFacts = {
  works: [
    "Top-level `await` and `return` work; without a return the final expression is the result, and a final assignment gives null.",
    "Functions, lambdas, closures, comprehensions, f-strings such as f'{x:.2f}', try/except/finally, unpacking, walrus and type hints work.",
    "In the result a whole float loses its .0 (1.0 is 1), and values without a JSON form become text: bytes, exceptions, types.",
  ],
  modules: [
    `Available modules: ${montyModules.join(", ")}.`,
    "asyncio has only gather and run: no sleep, create_task, wait_for or Semaphore. gather does not support return_exceptions: catch inside each coroutine.",
    "There is no clock, file system or environment: datetime.now(), date.today(), open() and os.environ raise; sys has no exit, os has no path.",
  ],
  blocked: [
    "Blocked modules: collections, itertools, functools, statistics, decimal, dataclasses, random, string, time, base64, hashlib, urllib.parse, csv, io, copy, enum, heapq, uuid, and every other module that is not listed as available. Use built-ins and comprehensions.",
    "No network: urllib.request, requests, httpx, socket, http.client, aiohttp and the like are not importable. Use call_tool.",
    "A blocked import raises a plain ImportError (ModuleNotFoundError), catchable with `except ImportError:`; it becomes an envelope only if not caught.",
  ],
  syntax: [
    "class, match, del, yield, async for, async with, async comprehensions, except*, `from x import *`, complex numbers, f'{x:,}' and f'{x:#x}'.",
  ],
  missing: [
    "Missing builtins: object, callable, dir, vars, globals, locals, eval, exec, input, format, issubclass, bytearray, complex, super.",
    "Methods of built-in values can be called (d.keys()) but are not attributes: hasattr('a', 'upper') is False, 'a'.upper and f.__name__ raise. Do not probe objects; know their shape.",
  ],
  raises: [
    "'{}'.format(x) and '%s' % x raise: use f-strings. For thousands separators build the text by hand.",
    "dict | dict raises: write {**a, **b}. [*range(3)] raises: write list(range(3)). x[0:1] = [...] raises: build a new list.",
    "sorted, min and max on lists raise: use tuples as keys. True + True raises: write sum(1 for x in xs if x).",
    "int(text, base), enumerate(xs, start=1), re.sub with a function, math.prod, math.hypot, json.dumps(default=), str.translate and datetime.astimezone raise; enumerate(xs, 1) works.",
    "Exceptions take at most one text: ValueError('a', 'b') fails. next() on a generator expression, and `global` for a name that is new, fail too.",
  ],
  wrong: [
    "<, >, <=, >= between lists or between sets are always False: [1, 2] < [1, 3], {1} < {1, 2}. Compare tuples; use a.issubset(b).",
    "frozenset([1]) == {1} is False.",
    "Decorators are parsed but not applied.",
    "round(x, n) rounds ties by the decimal text: round(2.675, 2) is 2.68, in CPython 2.67. sum of floats is not compensated: sum([0.1] * 10) is 0.9999999999999999; math.fsum raises.",
    "% with a float and a negative number keeps the sign of the left side: -7.5 % 2 is -1.5, in CPython 0.5. int % int is right.",
    "int(1e20) gives 9223372036854775807, and integers past 2**53 compare with floats as floats. str() of large and small floats has no exponent.",
    "Generator expressions, map, zip, enumerate and reversed are evaluated at once to lists: any(f(x) for x in xs) calls f for every x.",
  ],
} as const satisfies Record<string, readonly string[]>;

const polling =
  "Do not sleep, and write no polling loop: for a report that takes minutes, make one status check per call of execute, return, and let the user decide when to look again.";

const identityRules = [
  "Auth, region and profile are managed by the server. Never pass tokens or other credentials in params: such arguments are refused. Set them with set_active_identity, set_region and set_active_profile; they are sent with every later call_tool.",
  "Call get_session_state at the start of a block; it is read-only. Set the context again before the next call if and only if state_scope is 'request' or state_reason is not null. Within a block the scope cannot change; one call is enough. state_reason: 'no_mcp_session' (request-scoped transport), 'token_swapped' (the bearer token changed and the previous tenant's state was cleared), 'bridge_unavailable' (treat as 'request').",
].join("\n");

function seconds(milliseconds: number): string {
  return milliseconds >= 120_000 && milliseconds % 60_000 === 0 ? `${milliseconds / 60_000} min` : `${milliseconds / 1000} s`;
}

function bytes(count: number): string {
  if (count >= 1_000_000) return `${Math.round(count / 100_000) / 10} MB`;
  return count >= 1024 ? `${Math.round(count / 1024)} KB` : `${count} bytes`;
}

/** The MCP resource with the full description. */
export const executeGuideUri = "sluice://docs/execute";

/** The description of `execute` for MCP clients, which send it with every request: at most 4 KB. `describeExecute` has all details. */
export function summarizeExecute({ engine, hasCpython }: Pick<ExecuteDescriptionOptions, "engine" | "hasCpython">): string {
  return [
    "Run async Python with backend tools in scope: await call_tool(name: str, params: dict), asyncio.gather for several at once; find tools with search. Use return, or a final expression. Every tool result is kept whole under an alias that the answer lists, for code_interpreter: return only what you need to decide.",
    ["A failed tool call raises RuntimeError with the v1 error envelope as JSON:", ...failureExample].join("\n"),
    polling,
    "Auth, region and profile are managed by the server: never pass tokens in params. Call get_session_state at the start of a block.",
    ...(engine === "cpython"
      ? [`CPython with its standard library. ${cpythonGuardrails}`]
      : summarizeMonty(engine === "auto" && hasCpython)),
    `All details: ${executeGuideUri}.`,
  ].join("\n");
}

function summarizeMonty(isBesideCpython: boolean): string[] {
  const fallback =
    " A script that it cannot run or would plainly get wrong (an import that it lacks, class, decorators, round(x, n), datetime.now()) runs in CPython.";
  return [
    `Interpreter: Monty, a small Python.${isBesideCpython ? fallback : " Unsupported code fails."} In Monty:`,
    ...montyFacts.modules,
    ...montyFacts.blocked,
    ...montyFacts.missing,
    ...montyFacts.raises,
    "Silently different from CPython:",
    ...montyFacts.wrong.map((text) => `- ${text}`),
  ];
}
