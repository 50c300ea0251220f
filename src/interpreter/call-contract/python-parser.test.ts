import { afterAll, describe, expect, it } from "vitest";
import { createPythonParser, type ParsedPython } from "./python-parser.ts";

const parser = createPythonParser();
afterAll(() => parser.close());

describe("python parser", () => {
  it("reports the position of each syntax error in characters, counted from 1", async () => {
    expect(await errorsOf("x = '😀' +\ny = 1\nif x = 3:\n    pass\n")).toEqual([
      { line: 1, column: 10, message: "Expected an expression" },
      { line: 3, column: 6, message: "Expected `:`, found `=`" },
      { line: 4, column: 1, message: "Unexpected indentation" },
    ]);
  });

  it.each([
    ["return 1", "`return` statement outside of a function/method"],
    ["await x", "`await` statement outside of a function"],
    ["break", "`break` outside loop"],
    ["def f():\n    from math import *\n", "`from math import *` only allowed at module level"],
    ["t'hello'", "Cannot use t-strings on Python 3.13 (syntax was added in Python 3.14)"],
    ["try: pass\nexcept A, B: pass", "Multiple exception types must be parenthesized on Python 3.13 (syntax was added in Python 3.14)"],
    ["nonlocal x", "nonlocal declaration not allowed at module level"],
    ["f(a=1, a=2)", "Duplicate keyword argument `a`"],
  ])("finds what CPython's compiler rejects: %j", async (code, message) => {
    expect((await errorsOf(code))[0]?.message).toBe(message);
  });

  it("accepts the syntax of Python 3.13", async () => {
    const code =
      "type Pair[T = int] = tuple[T, T]\nmatch x:\n    case {'a': [1, *rest], **more}: print(f'{rest!r:>{10}} {f'{1}'}')\nwith (a as b, c as d): pass\n";
    expect(await parser.parse(code)).toEqual({ status: "parsed", errors: [], errorCount: 0 });
  });

  it("reports ten errors and counts the rest", async () => {
    const parsed = await parser.parse("x = = 1\n".repeat(100));
    expect(parsed).toMatchObject({ status: "parsed", errorCount: 100 });
    expect(await errorsOf("x = = 1\n".repeat(100))).toHaveLength(10);
  });

  it.each(["(", "not ", "f'{", "1+"])("survives %j repeated 100,000 times, and parses the next text", async (part) => {
    const parsed = await parser.parse(part.repeat(100_000));
    expect(parsed.status).not.toBe("parsed");
    expect(await errorsOf("x = 1")).toEqual([]);
  });

  it("stops parsing at the time limit, and parses the next text", async () => {
    await using impatient = createPythonParser({ timeoutMs: 600 });
    expect(await impatient.parse("x = 1")).toMatchObject({ status: "parsed" });
    expect(await impatient.parse("$?!".repeat(160_000))).toEqual({ status: "timeout" });
    expect(await impatient.parse("x = 1")).toMatchObject({ status: "parsed" });
  });

  it("gives each of many concurrent texts its own result", async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => errorsOf(`${"\n".repeat(index)}x = `)));
    expect(answers.map(([error]) => error?.line)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
  });

  it("throws PARSER_CLOSED after it was closed", async () => {
    const closed = createPythonParser();
    await closed.close();
    await closed.close();
    await expect(closed.parse("x")).rejects.toMatchObject({ code: "PARSER_CLOSED" });
  });
});

async function errorsOf(code: string): Promise<Extract<ParsedPython, { status: "parsed" }>["errors"]> {
  const parsed = await parser.parse(code);
  if (parsed.status !== "parsed") throw new Error(`the parser gave up: ${parsed.status}`);
  return parsed.errors;
}
