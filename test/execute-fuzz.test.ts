import * as fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseToolError } from "../src/errors/tool-error.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { createInvokeTool } from "../src/execute/invoke-tool.ts";
import { createMontyEngine, type MontyEngine } from "../src/execute/monty/create-monty-engine.ts";
import { runExecute, toExecuteJson, type ExecuteAnswer } from "../src/execute/run-execute.ts";
import { createLocalSource } from "../src/tools/create-local-source.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";

let monty: MontyEngine;
beforeAll(async () => {
  monty = createMontyEngine({ poolSize: 2, memoryBytes: 50_000_000 });
  await monty.warm();
});
afterAll(() => monty.close());

const catalog = createToolCatalog({
  sources: [
    createLocalSource([
      { name: "echo", description: "Gives back what it gets.", execute: (args) => args },
      {
        name: "typed",
        description: "Takes a few parameters and no others.",
        inputSchema: {
          type: "object",
          properties: {
            id: { type: "integer", minimum: 1 },
            name: { type: "string", maxLength: 5 },
            tags: { type: "array", items: { enum: ["a", "b"] } },
          },
          required: ["id"],
          additionalProperties: false,
        },
        execute: (args) => args,
      },
      {
        name: "failing",
        description: "Fails.",
        execute: () => {
          throw new TypeError("no");
        },
      },
    ]),
  ],
});
const invoke = createInvokeTool({ catalog, policy: createToolPolicy() });

async function expectTruth(code: string): Promise<void> {
  const evidence = createEvidenceStore({});
  const answer: ExecuteAnswer = await runExecute({
    code,
    engines: { monty },
    evidence,
    invoke,
    limits: { executionMs: 400, totalMs: 5_000, memoryBytes: 50_000_000 },
  });
  JSON.parse(toExecuteJson(answer));
  for (const { alias } of answer.aliases) expect(evidence.get(alias)).not.toBeNull();
  if (answer.status === "ok") expect(answer.error).toBeUndefined();
  else expect(parseToolError(answer.error)).toEqual(answer.error);
}

const name = fc.constantFrom(
  "x",
  "y",
  "rows",
  "total",
  "call_tool",
  "print",
  "e",
  "json",
  "asyncio",
  "_sluice_poll",
  "_sluice_call",
  "self",
);
const words = fc.oneof(fc.string({ unit: "grapheme", maxLength: 12 }), fc.constantFrom("", "\0", "{", "%s", "\u2028", "😀", "\\"));
const atom = fc.oneof(
  name,
  fc.integer().map((value) => `(${value})`),
  fc.double().map((value) => (Number.isFinite(value) ? `(${value})` : "float('nan')")),
  words.map((text) => JSON.stringify(text)),
  fc.constantFrom(
    "None",
    "True",
    "False",
    "[]",
    "{}",
    "()",
    "set()",
    "b'a\\xff'",
    "10**400",
    "...",
    "'a' * 10**9",
    "range(10**12)",
    "[0] * 10**8",
    "2 ** 2 ** 20",
  ),
);
const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 4, withCrossShrink: false },
    atom,
    fc
      .tuple(
        tie("expression"),
        fc.constantFrom("+", "-", "*", "/", "//", "%", "<", "==", "in", "and", "or", "is", "|", "@", "<<"),
        tie("expression"),
      )
      .map((parts) => `(${parts.join(" ")})`),
    fc.array(tie("expression"), { maxLength: 3 }).map((items) => `[${items.join(", ")}]`),
    fc
      .array(fc.tuple(tie("expression"), tie("expression")), { maxLength: 3 })
      .map((items) => `{${items.map(([key, value]) => `${key}: ${value}`).join(", ")}}`),
    fc
      .tuple(
        fc.constantFrom(
          "len",
          "str",
          "int",
          "sorted",
          "sum",
          "max",
          "list",
          "dict",
          "set",
          "round",
          "repr",
          "json.dumps",
          "json.loads",
          "print",
          "type",
          "hash",
        ),
        tie("expression"),
      )
      .map(([f, value]) => `${f}(${value})`),
    fc.tuple(tie("expression"), tie("expression")).map(([value, key]) => `${value}[${key}]`),
    fc
      .tuple(tie("expression"), fc.constantFrom("append", "keys", "upper", "split", "items", "format", "__class__"))
      .map(([value, method]) => `${value}.${method}()`),
    fc.tuple(tie("expression"), tie("expression")).map(([value, source]) => `[${value} for x in ${source} if x]`),
    tie("expression").map((value) => `(lambda x: ${value})(1)`),
    fc.tuple(name, fc.constantFrom("", "!r", ":>5", ":.2f")).map(([value, format]) => `f"{${value}${format}}"`),
    fc
      .tuple(fc.constantFrom("echo", "typed", "failing", "nowhere", ""), tie("expression"))
      .map(([tool, params]) => `(await call_tool(${JSON.stringify(tool)}, ${params}))`),
    fc
      .array(tie("expression"), { maxLength: 3 })
      .map((items) => `(await asyncio.gather(${items.map((item) => `call_tool('echo', {'v': ${item}})`).join(", ")}))`),
  ),
}));
const { block } = fc.letrec<{ block: string[]; statement: string[] }>((tie) => ({
  statement: fc.oneof(
    { maxDepth: 3 },
    { weight: 6, arbitrary: expression.map((value) => ["try:", ...indent([value]), "except Exception as e:", "    y = repr(e)"]) },
    { weight: 6, arbitrary: expression.map((value) => [value]) },
    { weight: 6, arbitrary: fc.tuple(name, expression).map(([target, value]) => [`${target} = ${value}`]) },
    { weight: 2, arbitrary: expression.map((value) => [`return ${value}`]) },
    { weight: 1, arbitrary: expression.map((value) => [`raise ${value}`]) },
    {
      weight: 3,
      arbitrary: fc.constantFrom("import json, asyncio", "import collections", "pass", "while True: pass").map((line) => [line]),
    },
    { weight: 6, arbitrary: fc.tuple(expression, tie("block")).map(([value, body]) => [`if ${value}:`, ...indent(body)]) },
    { weight: 6, arbitrary: fc.tuple(expression, tie("block")).map(([value, body]) => [`for x in ${value}:`, ...indent(body)]) },
    {
      weight: 6,
      arbitrary: fc
        .tuple(tie("block"), tie("block"))
        .map(([body, handler]) => ["try:", ...indent(body), "except RuntimeError as e:", ...indent(handler)]),
    },
    {
      weight: 6,
      arbitrary: fc.tuple(name, tie("block")).map(([f, body]) => [`async def ${f}(*a, **k):`, ...indent(body), `await ${f}(1)`]),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom("class A: pass", "from os import *", "break", "del x", "yield 1", "global x", "x +=", "@")
        .map((line) => [line]),
    },
  ),
  block: fc.array(tie("statement"), { minLength: 1, maxLength: 4 }).map((statements) => statements.flat()),
}));

function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `    ${line}`);
}

const params = fc.oneof(
  fc.jsonValue(),
  fc.record(
    { id: fc.oneof(fc.integer(), fc.bigInt(), fc.string()), name: fc.string(), tags: fc.array(fc.constantFrom("a", "b", "c")) },
    { requiredKeys: [] },
  ),
  fc.record({ id: fc.integer(), authorization: fc.string(), token: fc.constant("Bearer abcdefghijklmnop") }, { requiredKeys: [] }),
);

function toPython(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(toPython).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([key, item]) => `${JSON.stringify(key)}: ${toPython(item)}`)
      .join(", ")}}`;
  return typeof value === "string" ? JSON.stringify(value) : (value as number | bigint).toString();
}

it("gives the right outcome for 1,200 generated scripts", async () => {
  await fc.assert(
    fc.asyncProperty(block, (lines) => expectTruth(["import json, asyncio", "x = y = 1", ...lines].join("\n"))),
    { numRuns: 1_200, endOnFailure: true },
  );
}, 240_000);

it("gives the right outcome for 300 texts, most of them not Python", async () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc
      .array(
        fc.constantFrom("def ", "(", ")", ":", "\n", "    ", "'", '"""', "f'{", "await ", "x", "1", "\\", "#", "[", "lambda ", "=", "@"),
      )
      .map((parts) => parts.join("")),
  );
  await fc.assert(
    fc.asyncProperty(text, (code) => expectTruth(code)),
    { numRuns: 300, endOnFailure: true },
  );
}, 120_000);

it("gives the right outcome for 500 sets of parameters", async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom("echo", "typed", "failing", "tiped"), params, (tool, value) =>
      expectTruth(`await call_tool(${JSON.stringify(tool)}, ${toPython(value)})`),
    ),
    { numRuns: 500, endOnFailure: true },
  );
}, 120_000);
