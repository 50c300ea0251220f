import { describe, expect, it } from "vitest";
import { watchTurns } from "../../../test/fixtures/watch-turns.ts";
import { findCallLines } from "./find-call-line.ts";
import { findImports } from "./find-imports.ts";
import { findSilentlyWrong } from "./find-silently-wrong.ts";
import { readScript } from "./read-script.ts";
import { beginTokens, tokenizePython } from "./tokenize-python.ts";

const BYTES = 256 * 1024;
const filled = (part: string, begin = ""): string => (begin + part.repeat(Math.ceil(BYTES / part.length))).slice(0, BYTES);
const nested = Array.from({ length: 450 }, (_, depth) => `${" ".repeat(depth)}try:`).join("\n");

/** As long as a script may be, and made to be read slowly. */
const hostile: Readonly<Record<string, string>> = {
  "what a person writes": filled("total = sum(row['cost'] for row in rows if row['cost'] > 10)\n"),
  "open brackets": filled("{[("),
  "closed brackets": filled(")"),
  quotes: filled("'"),
  "f-strings in f-strings": filled(`f"{f'{`),
  "f-strings of all four kinds": filled(`f"{f'{f"""{f'''{`),
  "pairs of quotes in a field": filled("''", "f'{"),
  "pairs of quotes in fields that end late": filled(`${"''".repeat(490)}}{`, "f'{"),
  "quotes whose partner is almost too far": filled(`'${"x".repeat(990)}}`, "f'{"),
  "other quotes in a long field": filled(`'"`, 'f"""{'),
  "a long string with fields": filled("{a}{b!r:>{c}}", 'f"""'),
  backslashes: filled("\\"),
  continuations: filled("\\\n"),
  comments: filled("#\n"),
  "lines of one letter": filled("a\n"),
  "statements in deep blocks": filled("import a;", `${nested}\n${" ".repeat(450)}`),
  "one import of many": filled("a,", "import "),
  "one dotted name": filled("a.", "import "),
  comparisons: filled("[1]<[2]\n"),
  "lists that are never closed": filled("a=[\n"),
  numbers: filled("1."),
  spaces: filled(" "),
  emoji: filled("😀"),
};

describe.each(Object.keys(hostile))("256 KB of %s", (name) => {
  const code = hostile[name]!;

  it("are read in no more steps than they have characters", () => {
    const reading = beginTokens(code);
    let steps = 1;
    while (!reading.readOn(1)) steps += 1;
    expect(steps).toBeLessThanOrEqual(code.length + 1);
    expect(reading.tokens.length).toBeLessThanOrEqual(code.length + 1000);
  });

  it("do not hold up the event loop", async () => {
    const turns = watchTurns();
    const tokens = await readScript(code);
    findImports(tokens);
    findSilentlyWrong(tokens);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(turns.stop()).toBeLessThan(250); // of the processor's time: a few milliseconds, or tens where others compute
  });
});

describe("a script that is read bit by bit", () => {
  it("has the same tokens as one that is read at once", async () => {
    const code = "def f(x):\n    return f'{x!r}' < [1]\n\n# end\nclass A: pass\n".repeat(500);
    const reading = beginTokens(code);
    while (!reading.readOn(7));
    expect(reading.tokens).toEqual(tokenizePython(code));
    expect(await readScript(code)).toEqual(tokenizePython(code));
  });

  it("is read to its end: an import there counts as well", async () => {
    const code = `${"# a long comment\n".repeat(15_000)}import statistics`;
    expect(findImports(await readScript(code))).toEqual([{ module: "statistics", line: 15_001, isGuarded: false }]);
  });
});

describe("the line of a call", () => {
  it.each<[code: string, lines: number[]]>([
    ["x = 1\nawait call_tool('t', {})", [2]],
    ["call_tool('other')\n\ncall_tool(\"t\")", [3]],
    ["call_tool('t')\ncall_tool('t')", [1, 2]],
    ["call_tool('t')\ncall_tool('t', {'id': 1})", [1]],
    ["call_tool('t', {'id': 1, 'all': True, 'of': [1, None,], })\ncall_tool('t', params)", [2]],
    ["call_tool('t', {'id': n})\ncall_tool('t', {\n  'id': 2,\n})", [1]],
    ["call_tool('other')\ncall_tool(name)", [2]],
    ["call_tool('t')\ncall_tool(name)", [1, 2]],
    ["call_tool('t')\ncall_tool('t' + x)", [1, 2]],
    ["call_tool('t')\ncall_tool(f'{x}')", [1, 2]],
    ["call_tool('t')\nf = call_tool", []],
    ["'call_tool(1)'\n# call_tool('t')", []],
  ])("of %j is %j", (code, lines) => {
    expect(findCallLines(tokenizePython(code), [{ tool: "t", params: {} }])).toEqual(lines);
  });

  it("is that of the parameters that were sent", () => {
    const code = "call_tool('t', {'id': 1})\ncall_tool('t', {'id': 2, 'all': True, 'of': [1, None]})\ncall_tool('t', {\"id\": 3,})";
    const of = (params: unknown) => findCallLines(tokenizePython(code), [{ tool: "t", params }]);
    expect([of({ id: 1 }), of({ id: 2, all: true, of: [1, null] }), of({ id: 3 }), of({ id: 4 })]).toEqual([[1], [2], [3], []]);
  });
});
