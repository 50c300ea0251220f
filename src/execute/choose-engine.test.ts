import { describe, expect, it } from "vitest";
import { chooseEngine } from "./choose-engine.ts";

const reasonOf = (code: string): string | undefined => chooseEngine(code, "auto").reason;

describe("imports", () => {
  it.each<[code: string, reason: string]>([
    ["from collections import Counter", "Line 1 imports collections"],
    ["import json, math as m, csv", "Line 1 imports csv"],
    ["from urllib.parse import (quote,\n  unquote)", "Line 1 imports urllib.parse"],
    ["f'{\"import os\"}'; import heapq", "Line 1 imports heapq"],
    ["if True: import copy", "Line 1 imports copy"],
    ["def f():\n    import heapq\n    return heapq", "Line 2 imports heapq"],
    ["try: import decimal\nexcept ImportError: import string", "Line 2 imports string"],
    ["try:\n    x = 1\nexcept ValueError:\n    pass\nimport string", "Line 5 imports string"],
    ["try:\n    if x:\n        import csv\nfinally:\n    import enum", "Line 5 imports enum"],
    ['"""a\nb"""\n\nimport io', "Line 4 imports io"],
    ["import os.path", "Line 1 imports os.path"],
    ["import \\\n  base64", "Line 1 imports base64"],
    ["import time", "Line 1 imports time"],
    ["try:\n    import time\nexcept ImportError:\n    time = None", "Line 2 imports time"],
    ["try:\n    import decimal, time\nexcept ImportError:\n    pass", "Line 2 imports time"],
    ["from threading import Thread", "Line 1 imports threading"],
    ["import json, subprocess", "Line 1 imports subprocess"],
    ["import pandas as pd", "Line 1 imports pandas"],
    ["import urllib.request", "Line 1 imports urllib.request"],
  ])("%j goes to CPython", (code, reason) => {
    expect(reasonOf(code)).toBe(`${reason}, which Monty does not have.`);
  });

  it.each([
    "import json, math as m",
    "x = 'import csv'\n# import csv\n'''\nimport csv\n'''",
    "try:\n    import decimal\nexcept ImportError:\n    decimal = None",
    "try:\n    if x:\n        import csv as c\nexcept ImportError:\n    pass",
    "from . import x",
    "x = important\nimported = 3",
  ])("%j stays in Monty", (code) => {
    expect(chooseEngine(code, "auto")).toEqual({ engine: "monty" });
  });
});

describe("code that Monty would run with a wrong result", () => {
  const order = "compares lists or sets with < or >, which Monty does not support.";
  const remainder = "uses % with a float, which Monty computes wrongly if one side is negative.";
  const round = "uses round(x, n), which Monty rounds by the decimal text.";
  const time = "asks for the current time, which Monty does not have.";
  it.each<[code: string, reason: string]>([
    ["x = 1\n[1, 2] < [1, 3]", `Line 2 ${order}`],
    ["x = 1\n[1, 2] < y", `Line 2 ${order}`],
    ["x > [1]", `Line 1 ${order}`],
    ["return [a, b] <= other", `Line 1 ${order}`],
    ["if {*a} >= b: pass", `Line 1 ${order}`],
    ["[i for i in x] < y", `Line 1 ${order}`],
    ["[row['a'], 1] < best", `Line 1 ${order}`],
    ["[[1]] < y", `Line 1 ${order}`],
    ["(1, [2]) < (1, [3])", `Line 1 ${order}`],
    ["x < ([1])", `Line 1 ${order}`],
    ["if set(names) <= set(row): pass", `Line 1 ${order}`],
    ["f'{ {1} < x }'", `Line 1 ${order}`],
    ["round(x, 2)", `Line 1 ${round}`],
    ["print(round(f(a, b) / 3, n))", `Line 1 ${round}`],
    ["round(sum(float(r.get('cost', 0)) for r in rows) / len(rows), ndigits=2)", `Line 1 ${round}`],
    ["'''\n'''\nf'{round(x, 2):.1f} of {y}'", `Line 3 ${round}`],
    ['f"{round(x, 2):>{w}}"', `Line 1 ${round}`],
    ['f"{x:>{round(w, 1)}}"', `Line 1 ${round}`],
    ['f"{round(d["a"], 2)}"', "Line 1 has an f-string with quotes inside a field, which this check cannot read."],
    ["f'{f\"{round(x, 2)}\"}'", `Line 1 ${round}`],
    ["f'''{\n  round(x,\n 2)\n}'''", `Line 2 ${round}`],
    ["f'{\n  round(x, 2)\n}'", `Line 2 ${round}`],
    ["rf'\\{round(x, 2)}'", `Line 1 ${round}`],
    ["f'{{}}{{{round(x, 2)}}}'", `Line 1 ${round}`],
    ["round(x,\n      2)", `Line 1 ${round}`],
    ["x % 1.5", `Line 1 ${remainder}`],
    ["-7.5 % 2", `Line 1 ${remainder}`],
    ["x %= .5", `Line 1 ${remainder}`],
    ["x % -1.5e3", `Line 1 ${remainder}`],
    ["(-7.5) % 2", `Line 1 ${remainder}`],
    ["x % 1e1", `Line 1 ${remainder}`],
    ["x % (2.5)", `Line 1 ${remainder}`],
    ["x % +1.5", `Line 1 ${remainder}`],
    ["x * 1.5 % 2", `Line 1 ${remainder}`],
    ["f'{x % 1.5:.2f}'", `Line 1 ${remainder}`],
    ["x \\\n  % 1.5", `Line 2 ${remainder}`],
    ["import datetime\ndatetime.datetime.now()", `Line 2 ${time}`],
    ["from datetime import date\nf'{date.today()}'", `Line 2 ${time}`],
    ["from datetime import datetime as d\nnow = d.now\nnow()", `Line 2 ${time}`],
    ["@cache\ndef f(): pass", "Line 1 has a decorator, which Monty does not apply."],
  ])("%j goes to CPython", (code, reason) => {
    expect(chooseEngine(code, "auto")).toEqual({ engine: "cpython", reason });
  });

  it.each([
    "1 < 2",
    "if x in [1, 2] and y > 3: pass",
    "[x for x in [1, 2] if x > 1]",
    "f([1], x > 1)",
    "y = [1] if x > 1 else [2]",
    "while x < 3: y = [1]",
    "x > 1\n[1]",
    "[1, 2].index(x) < 3",
    "sorted(xs)[0] < 3",
    "x >> [1][0]",
    "f'{x:<10} {[1]}'",
    "f'{x!r:>{w}} {y=:.2f}'",
    "f'\\'{x}' + 'round(x, 2)'",
    "xs[0] < ys[1]",
    "[1, 2][0] < 3",
    "len([1]) < 2",
    "f(x)[1] > 2",
    "(1, 2) < (1, 3)",
    "'[1] < [2]'",
    "# [1] < [2]",
    "def f(x) -> [int]: pass",
    "d = {'a': [1]}\nd['a'][0] < 3",
    "f'{rows[0]:>10} {x:.1%} {{1.5}}'",
    "round(x)",
    "round(f(a, b))",
    "round(x, )",
    "o.round(x, 2)",
    "def round(a, b): pass",
    "x % 2",
    "x % 2 == 0.5",
    "x % 2 + 0.5",
    "(x % 2) * 0.5",
    "x % 0x1e5",
    "m = a @ b",
    "'date.today()'",
    "datetime.date(2024, 1, 1)",
  ])("%j stays in Monty", (code) => {
    expect(chooseEngine(code, "auto")).toEqual({ engine: "monty" });
  });
});

it("returns the configured engine without looking at the code", () => {
  expect(chooseEngine("round(x, 2)", "monty")).toEqual({ engine: "monty" });
  expect(chooseEngine("1", "cpython")).toEqual({ engine: "cpython" });
});

it.each([
  '"',
  "'''",
  '"""\\',
  "\\",
  '"\\"',
  "f'{",
  "[",
  "round(",
  "round(()",
  " ",
  "\n",
  "= ",
  ", ",
  "1",
  ".1",
  "1_",
  "% ",
  "< ",
  "import ",
  "import a,",
  "try:\n ",
  "from x",
  "@",
  "#",
  "[1",
  "{}",
  "date.",
  "f'{x:{",
  "f'{f\"{",
  "f'{x}'",
  "import json\n",
  "import json;",
])("checks 256 KB of %j quickly", (piece) => {
  const started = process.cpuUsage();
  chooseEngine(piece.repeat(256 * 1024).slice(0, 256 * 1024), "auto");
  chooseEngine(`x = ${piece.repeat(256 * 1024).slice(0, 256 * 1024)}`, "auto");
  const { user, system } = process.cpuUsage(started);
  expect((user + system) / 1000).toBeLessThan(1000);
});
