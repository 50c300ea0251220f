import { afterAll, describe, expect, it } from "vitest";
import { createPythonParser } from "./python-parser.ts";

const parser = createPythonParser();
afterAll(() => parser.close());

describe("imports of a cell", () => {
  it("are found with their line and column, wherever they are", async () => {
    const code = [
      "import os, a.b as c; import d",
      "from e.f import (g as h,",
      "    i)",
      "def j():",
      "    'é'; from k import *",
      "if x: import l",
      "from . import m",
      "from ...n import o",
      "p = __import__('q.r'), importlib.import_module(\"s\")",
      "from match import type",
    ].join("\n");
    expect(await importsOf(code)).toEqual([
      "1:8 os",
      "1:12 a.b",
      "1:29 d",
      "2:1 e.f: g, i",
      "5:10 k: *",
      "6:14 l",
      "7:1 .: m",
      "8:1 ...n: o",
      "9:5 q.r",
      "9:34 s",
      "10:1 match: type",
    ]);
  });

  it("are found where a function makes them, as far as the name is written out", async () => {
    const code = [
      "from importlib import (reload, import_module as load)",
      "load('a.b'); load(name=r'c')",
      'import_module(name="""d""", package=None)',
      "x = lambda: __import__(u'e', globals())",
      "load(f'{name}'); load('f' 'g'); other('h'); import_module('.i', 'j')",
    ].join("\n");
    expect(await importsOf(code)).toEqual(["1:1 importlib: reload, import_module", "2:1 a.b", "2:14 c", "3:1 d", "4:13 e"]);
  });

  it("are not taken from strings, comments, or other uses of the words", async () => {
    const code = [
      '"""',
      "import a",
      '"""',
      "# import b",
      "text = 'from c import d'",
      "f'''",
      "import e {x} ''' ",
      "def f():",
      "    yield from g",
      "try: pass",
      "except E as e: raise ValueError from e",
      "x.import_module(name); __import__(name)",
    ].join("\n");
    expect(await importsOf(code)).toEqual([]);
  });

  it.each([
    ["try:\n    import a\nexcept ImportError:\n    pass\n"],
    ["try: import a\nexcept ModuleNotFoundError: a = None\n"],
    ["try:\n    if x:\n        import a\nexcept (OSError, ImportError) as error:\n    pass\n"],
    ["try:\n    x\n    import a\nexcept ValueError:\n    pass\nexcept:\n    pass\n"],
    ["from contextlib import suppress\nwith suppress(ImportError):\n    import a\n"],
    ["if TYPE_CHECKING:\n    import a\n"],
    [
      "def f():\n    try:\n        try:\n            import a\n        except ValueError:\n            pass\n    except Exception:\n        pass\n",
    ],
  ])("are guarded when the code goes on without them: %j", async (code) => {
    expect((await importsOf(code)).filter((found) => !found.endsWith("suppress"))).toEqual([expect.stringMatching(/^\d+:\d+ a guarded$/)]);
  });

  it.each([
    ["try:\n    import a\nexcept ValueError:\n    pass\n"],
    ["try:\n    import a\nfinally:\n    pass\n"],
    ["try:\n    pass\nexcept ImportError:\n    import a\n"],
    ["try:\n    pass\nexcept ImportError:\n    pass\nelse:\n    import a\n"],
    ["try:\n    pass\nexcept ImportError:\n    pass\nimport a\n"],
    ["try: x\nexcept ValueError: y\ntry: z\nexcept ImportError: w\nif v:\n    import a\n"],
    ["with open(ImportError):\n    import a\n"],
  ])("are not guarded by what does not catch them: %j", async (code) => {
    expect(await importsOf(code)).toEqual([expect.stringMatching(/^\d+:\d+ a$/)]);
  });
});

async function importsOf(code: string): Promise<string[]> {
  const parsed = await parser.parse(code);
  if (parsed.status !== "parsed") throw new Error(`the parser gave up: ${parsed.status}`);
  return parsed.imports.map(({ module, names, level, line, column, guarded }) => {
    const from = names.length > 0 ? `: ${names.join(", ")}` : "";
    return `${line}:${column} ${".".repeat(level)}${module}${from}${guarded ? " guarded" : ""}`;
  });
}
