import { montyModules } from "../prompts/describe-execute.ts";
import { reasonsForCpython } from "../prompts/result-notes.ts";
import type { EngineName, ExecuteSettings } from "./engine.ts";

export type EngineSetting = ExecuteSettings["engine"];

export interface EngineChoice {
  readonly engine: EngineName;
  /** Why Monty was not chosen, as a sentence. */
  readonly reason?: string | undefined;
}

/**
 * Chooses the engine before anything runs, with a few regular expressions over the code. They err towards CPython: a script that needlessly runs there
 * still works, while one that wrongly stays in Monty may compute a wrong result. Monty's own parser reports unsupported syntax (`class`, `match`, `del`,
 * `yield`), also before anything runs; see `runOnEngine`.
 */
export function chooseEngine(script: string, setting: EngineSetting): EngineChoice {
  if (setting !== "auto") return { engine: setting };
  const code = blankCommentsAndStrings(script);
  const found = findMissingImport(code) ?? findInBrackets(code) ?? findWrongInMonty(code);
  if (found === null) return { engine: "monty" };
  return { engine: "cpython", reason: `Line ${script.slice(0, found.index).split("\n").length} ${found.what}.` };
}

interface Found {
  readonly index: number;
  readonly what: string;
}

/** Comments, line continuations and string literals. Unterminated strings end with their line or with the script, which keeps matching linear. */
const commentsAndStrings =
  /#.*|\\\r?\n|(?:\b[bruft]{1,2})?(?:("""|''')(?:\\[^]|(?!\1)[^\\])*(?:\1|$)|"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?)/gi;

/** Replaces comments and string contents with spaces; the length stays the same. In f-strings only format specifications are blanked. */
function blankCommentsAndStrings(script: string): string {
  return script.replaceAll(commentsAndStrings, (text) => {
    if (/^[#\\]/.test(text)) return " ".repeat(text.length);
    const hasFields = /^[br]?[ft]/i.test(text);
    const inside: string = hasFields ? text.replaceAll(/:[^{}()[\]\n]*[{}]?|["'\\#]/g, blankSpecification) : blank(text);
    const isCutOff = inside.split("{").length !== inside.split("}").length; // a quote inside a field ended the match early
    return `${isCutOff ? "\0" : '"'}${inside.slice(1, -1)}"`.slice(0, text.length);
  });
}

/** A format specification ends at a brace; in other text only what could begin a string or a comment is blanked. */
function blankSpecification(text: string): string {
  const end = text.at(-1)!;
  return end === "{" || end === "}" ? blank(text.slice(0, -1)) + end : text.replaceAll(/["'\\#]/g, " ");
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, " ");
}

/**
 * An import of a module that Monty lacks. Imports inside a `try` body are skipped, because the script handles their failure, except that
 * of `time`: a script must not get the clock, or not, by what else it imports.
 */
function findMissingImport(code: string): Found | null {
  const tries: number[] = [];
  let index = 0;
  for (const line of code.split("\n")) {
    const indent = line.search(/\S/);
    if (indent >= 0) {
      while (indent <= (tries.at(-1) ?? -1)) tries.pop();
      if (/^\s*try\s*:/.test(line)) tries.push(indent);
      const module = importsOf(line).find((name) => !montyModules.includes(name) && (tries.length === 0 || name === "time"));
      if (module !== undefined) return { index, what: reasonsForCpython.missingModule(module) };
    }
    index += line.length + 1;
  }
  return null;
}

function importsOf(line: string): string[] {
  return [...line.matchAll(/(?:^|[;:])\s*(?:import\s+(\w[^;]*)|from\s+(\w[\w.]*)\s+import\b)/g)].flatMap(
    ([, modules, from = ""]) => modules?.split(",").map((part) => part.trim().split(/\s/)[0]!) ?? [from],
  );
}

/** Finds `round(x, n)`, and lists or sets next to `<` or `>`. Tracks brackets, because only their nesting tells what an operator applies to. */
function findInBrackets(code: string): Found | null {
  const open: { readonly isRound: boolean; readonly isValue: boolean; hasList: boolean }[] = [];
  for (const { 0: token, index } of code.matchAll(/[([{]|[)\]}]|,(?!\s*\))/g)) {
    const around = open.at(-1);
    if (token === ",") {
      if (around?.isRound) return { index, what: reasonsForCpython.round };
    } else if (/[([{]/.test(token)) {
      const before = code.slice(Math.max(0, index - 40), index);
      const isList = token === "(" ? makesList.test(before) : true;
      const isValue =
        makesList.test(before) ||
        !/[\w)\]}"][^\S\n]*$/.test(before) ||
        /\b(?:and|assert|elif|if|in|is|not|or|return|while)\s*$/.test(before);
      if (isList && isLessOrMore.test(before.replace(makesList, ""))) return { index, what: reasonsForCpython.comparison };
      open.push({ isRound: /(?<![\w.]|\bdef\s{1,8})round\s*$/.test(before), isValue, hasList: isList });
    } else {
      const closed = open.pop();
      if (closed === undefined || !closed.isValue || !closed.hasList) continue;
      if (/^\s*[<>]=?(?![<>])/.test(code.slice(index + 1, index + 40))) return { index, what: reasonsForCpython.comparison };
      if (open.length > 0) open.at(-1)!.hasList = true;
    }
  }
  return null;
}

const makesList = /(?<![\w.]|\bdef\s{1,8})(?:list|set|frozenset|sorted)\s*$/;
const isLessOrMore = /(?<![-<>=])[<>]=?\s*(?:\(\s*)*$/;
const float = String.raw`(?:\d[\d_]*\.[\d_]*(?:e[+-]?\d+)?|\.\d[\d_]*(?:e[+-]?\d+)?|\d[\d_]*e[+-]?\d+)`;
const wrongInMonty: readonly { readonly pattern: RegExp; readonly what: string }[] = [
  { pattern: /^[ \t]*@/m, what: reasonsForCpython.decorator },
  { pattern: /\.\s*(?:now|utcnow|today)\b/, what: reasonsForCpython.clock },
  {
    pattern: new RegExp(String.raw`%=?[\s(+-]*${float}|(?<![\w.])${float}[\s)]*%`, "i"),
    what: reasonsForCpython.remainder,
  },
  { pattern: /\0/, what: reasonsForCpython.nestedQuotes },
];

function findWrongInMonty(code: string): Found | null {
  for (const { pattern, what } of wrongInMonty) {
    const index = code.search(pattern);
    if (index >= 0) return { index, what };
  }
  return null;
}
