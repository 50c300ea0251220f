import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findImports } from "./find-imports.ts";
import { findDecorators, findSilentlyWrong } from "./find-silently-wrong.ts";
import { tokenizePython } from "./tokenize-python.ts";

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
  ])("%j gives none", (code) => {
    expect(findSilentlyWrong(tokenizePython(code))).toEqual([]);
  });

  it("is told with its line", () => {
    expect(findSilentlyWrong(tokenizePython("a = 1\n\nprint([1] < [2])"))).toEqual([warning(3)]);
  });

  it("are decorators too", () => {
    expect(findDecorators(tokenizePython("@cache\ndef f(): pass\nm = a @ b\n@x.y(1)\nasync def g(): pass"))).toEqual([1, 4]);
  });
});

it.each(["<[", "x<[", "{", `f'{"`, "a,", "[1]<", "lambda x:", "(", "x=[", "import a;", '"""'])(
  "reads a long row of %j in one pass",
  (part) => {
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
