import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { claims } from "../description/claims.ts";
import { findImports } from "./find-imports.ts";
import { findSilentlyWrong } from "./find-silently-wrong.ts";
import { tokenizePython } from "./tokenize-python.ts";
import { findDecorators } from "./wrong-constructs.ts";

describe("imports of a script", () => {
  it.each<[code: string, imports: string[]]>([
    ["import json, math as m", ["json", "math"]],
    ["from collections import Counter", ["collections"]],
    ["from urllib.parse import (quote,\n  unquote)", ["urllib.parse"]],
    ["x = 'import os'\n# import sys\n'''\nimport re\n'''", []],
    ["f'{\"import os\"}'; import re", ["re"]],
    ["if True: import time", ["time"]],
    ["def f():\n    import heapq\n    return heapq", ["heapq"]],
    ["try:\n    import decimal\nexcept ImportError:\n    decimal = None", ["decimal (guarded)"]],
    ["try: import decimal\nexcept ImportError: import math", ["decimal (guarded)", "math"]],
    ["try:\n    x = 1\nexcept ValueError:\n    pass\nimport string", ["string"]],
    ["try:\n    if x:\n        import a.b as c\nfinally:\n    import d", ["a.b (guarded)", "d"]],
    ["from . import x", []],
    ["x = important\nimported = 3", []],
    ["import \\\n  base64", ["base64"]],
  ])("%j", (code, imports) => {
    const found = findImports(tokenizePython(code)).map(({ module, isGuarded }) => (isGuarded ? `${module} (guarded)` : module));
    expect(found).toEqual(imports);
  });

  it("come with their line", () => {
    expect(findImports(tokenizePython('"""a\nb"""\n\nimport json'))).toEqual([{ module: "json", line: 4, isGuarded: false }]);
  });
});

describe("what is silently wrong", () => {
  const warning = (line: number): string =>
    `Line ${line} compares lists or sets with < or >: in Monty that is always False. Compare tuples (tuple(x) < tuple(y)), or use a.issubset(b).`;

  it.each([
    "[1, 2] < [1, 3]",
    "x > [1]",
    "return [a, b] <= other",
    "{1} < {1, 2}",
    "if {*a} >= b: pass",
    "a = [1]\nb = [2]\nif a < b:\n    pass",
    "rows = sorted(x)\nrows > best",
    "s = set()\ns <= t",
    "[i for i in x] < y",
    "x = [\n  1,\n]\ny < x",
    "(1, [2]) < (1, [3])",
    "x >= ([1], 2)",
    "frozenset(a) == {1, 2}",
    "{1} != frozenset([1])",
    "set(a) == frozenset(b)",
    "round(x, 2)",
    "print(round(f(a, b) / 3, n))",
    "sum([0.1] * 10)",
    "x % 1.5",
    "-7.5 % 2",
    "float(x) % 360",
    "x %= 0.5",
    "int(1e20)",
    "9007199254740993 == 9007199254740992.0",
    "x = 1\n2.0 < 18014398509481984",
    "str(1e16)",
    "str(-1e-5)",
    "str(float('nan'))",
    "any(f(x) for x in xs)",
    "all(not row.get(k) for k in ks)",
    "m = map(f, xs)",
    "g = (x for x in xs)",
    "pairs = zip(a, b); list(pairs)",
    "if hasattr(x, 'get'): pass",
    "@cache\ndef f(): pass",
  ])("%j gives a warning", (code) => {
    expect(findSilentlyWrong(tokenizePython(code))).toHaveLength(1);
  });

  it.each([
    "1 < 2",
    "a < b",
    "xs[0] < ys[1]",
    "[1, 2][0] < 3",
    "3 > [1, 2][0]",
    "len([1]) < 2",
    "f(x)[1] > 2",
    "(1, 2) < (1, 3)",
    "x = [1]\nx[0] < 2",
    "x = [1]\nlen(x) < 2",
    "x = [1]\nx.count(1) < 2",
    "x = [1]\nx = 3\nx < 2",
    "x = [1]\nfor x in y:\n    x < 2",
    "x = [1]\ndef f(x, y):\n    return x < y",
    "x = [1]\nlambda x: x < 3",
    "x = [1]\nx, y = 1, 2\nx < y",
    "x = [1] and 3\nx < 2",
    "x = [1, 2][0]\nx < 2",
    "x = {'a': 1}\nx < 2",
    "{'a': 1}['a'] < 2",
    "{} < 1",
    "o.x < 3\nx = [1]",
    "x = [1] if y else 0\nx < 2",
    "'[1] < [2]'",
    "# [1] < [2]",
    "x: int = 3\nx < 4",
    "d = {k: [1] for k in y}\nd['a'][0] < 3",
    "sorted(x, key=lambda r: r['n'] < 3)",
    "(a, b) < (c, d)",
    "([1][0], 2) < x",
    "frozenset(a) == frozenset(b)",
    "frozenset(a) == b",
    "frozenset(a) == {1: 2}",
    "round(x)",
    "round(f(a, b))",
    "round(x, )",
    "o.round(x, 2)",
    "def round(a, b): pass",
    "sum(xs)",
    "sum(x for x in xs)",
    "x % 2",
    "-7 % 3",
    "'%s' % 1.5",
    "x % 2 == 0.5",
    "int(x)",
    "int(1e5)",
    "x == 9007199254740993",
    "0x1fffffffffffff < 1",
    "str(1.5)",
    "str(x)",
    "any(x > 2 for x in xs)",
    "any(len(x) > 2 for x in xs)",
    "any([f(x) for x in xs])",
    "for a, b in zip(x, y): pass",
    "m = list(map(f, xs))",
    "m = map(f, xs)[0]",
    "t = (1, 2)",
    "f(key=map(f, xs))",
    "m = a @ b",
  ])("%j gives none", (code) => {
    expect(findSilentlyWrong(tokenizePython(code))).toEqual([]);
  });

  it("is told with its line", () => {
    expect(findSilentlyWrong(tokenizePython("a = 1\n\nprint([1] < [2])"))).toEqual([warning(3)]);
  });

  it("is told once for each kind, with all its lines", () => {
    const code = "a = round(x, 1)\nb = round(y, 2)\nc = [1] < [2]\n@d\ndef f(): pass";
    expect(findSilentlyWrong(tokenizePython(code))).toEqual([
      warning(3),
      "Lines 1, 2 round with round(x, n): Monty rounds ties by the decimal text, so that round(2.675, 2) is 2.68 where CPython says 2.67. Round for display only.",
      "Line 4 has a decorator: Monty does not apply it. Wrap the function by hand.",
    ]);
    const many = Array.from({ length: 14 }, () => "hasattr(x, 'y')").join("\n");
    expect(findSilentlyWrong(tokenizePython(many))).toEqual([
      "Lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 4 more ask with hasattr: in Monty it is False for the methods of built-in values. Know the shape of your data instead.",
    ]);
  });

  it.each<[code: string, line: number]>([
    ['f"{[1] < [2]}"', 1],
    ['xs = [1]\nprint(f"first\\n{xs}{1}{xs > ys!r:>10}")', 2],
    ["f'''\n{1}\n{\n [1] < x =}'''", 4],
    ['rf"{{no}} {x:{[1] < [2]}}"', 1],
    [`f"{f'{[1] < x}'}"`, 1],
    [`f"{d['a']} {'}' if [1] < x else ':'}"`, 1],
  ])("is seen in the fields of f-strings: %j", (code, line) => {
    expect(findSilentlyWrong(tokenizePython(code))).toEqual([warning(line)]);
  });

  it.each(['f"{{[1] < [2]}}"', '"{[1] < [2]}"', 'xs = 1\nf"{xs=} {xs!r} {xs:<10} {xs:>{width}} {a != b}"', 'f"{lambda: 1}"'])(
    "is not seen where there is none: %j",
    (code) => {
      expect(findSilentlyWrong(tokenizePython(code))).toEqual([]);
    },
  );

  it("has a sentence for every claim that a script can show", () => {
    const scripts = claims.filter(({ topic }) => topic === "wrong").map(({ checks }) => checks.map(({ code }) => code));
    expect(scripts.filter((codes) => codes.every((code) => findSilentlyWrong(tokenizePython(code)).length === 0))).toEqual([]);
  });

  it("are decorators too", () => {
    expect(findDecorators(tokenizePython("@cache\ndef f(): pass\nm = a @ b\n@x.y(1)\nasync def g(): pass"))).toEqual([1, 4]);
  });
});

it.each(["<[", "x<[", "{", `f'{"`, "a,", "[1]<", "lambda x:", "(", "x=[", "import a;", '"""'])(
  "reads a long row of %j in one pass",
  (part) => {
    findSilentlyWrong(tokenizePython(`f"${part.repeat(Math.floor((32 * 1024) / part.length) - 1)}"`));
    const tokens = tokenizePython(part.repeat(Math.floor((256 * 1024) / part.length)));
    findImports(tokens);
    findDecorators(tokens);
    expect(findSilentlyWrong(tokens).length).toBeLessThan(2);
  },
);

it("reads any text without failing", () => {
  const words = fc.constantFrom(
    "import ",
    "try:",
    "\n",
    "    ",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "f'{",
    "'",
    '"""',
    "<",
    "x",
    "=",
    "\\",
    "#",
    "lambda",
    "é",
    "1.5e",
    ",",
    ":",
    "for ",
    " in ",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: "binary" }),
        fc.array(words).map((parts) => parts.join("")),
      ),
      (code) => {
        const tokens = tokenizePython(code);
        findImports(tokens);
        findSilentlyWrong(tokens);
        findDecorators(tokens);
      },
    ),
    { numRuns: 500 },
  );
});
