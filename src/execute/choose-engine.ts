import type { EngineName, ExecuteSettings } from "./engine.ts";
import { montyModules } from "../prompts/monty-modules.ts";

export type EngineSetting = ExecuteSettings["engine"];

export interface EngineChoice {
  readonly engine: EngineName;
  /** Why it is not Monty, as a sentence. */
  readonly reason?: string | undefined;
}

/**
 * Decides before anything has run, by a few expressions over the text. They find too much rather than too little: a script that is sent to CPython without
 * need still runs, one that stays in Monty may be silently wrong. Syntax that Monty does not support (`class`, `match`, `del`, `yield`) is reported by its own
 * parser, also before anything has run; `unsupportedReason` is the sentence for it.
 */
export function chooseEngine(script: string, setting: EngineSetting): EngineChoice {
  if (setting !== "auto") return { engine: setting };
  const code = withoutTexts(script);
  const found = findMissingImport(code) ?? findInBrackets(code) ?? findWrongInMonty(code);
  if (found === null) return { engine: "monty" };
  return { engine: "cpython", reason: `Line ${script.slice(0, found.index).split("\n").length} ${found.what}.` };
}

export function unsupportedReason({ message, line }: { readonly message: string; readonly line?: number | undefined }): string {
  return `${line === undefined ? "" : `Line ${line}: `}${message.replace(/^The monty syntax parser does not yet support /, "Monty does not support ")}.`;
}

interface Found {
  readonly index: number;
  readonly what: string;
}

/** Comments, continued lines and string literals. Unterminated ones end with their line, or with the script, so that every text is read once. */
const texts = /#.*|\\\r?\n|(?:\b[bruft]{1,2})?(?:("""|''')(?:\\[^]|(?!\1)[^\\])*(?:\1|$)|"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?)/gi;

/** The script, as long as before, with spaces for comments and for what is inside of strings. Of f-strings all but the formats of fields stays. */
function withoutTexts(script: string): string {
  return script.replaceAll(texts, (text) => {
    if (/^[#\\]/.test(text)) return " ".repeat(text.length);
    const hasFields = /^[br]?[ft]/i.test(text);
    const inside: string = hasFields ? text.replaceAll(/:[^{}()[\]\n]*(?=[{}])|["'\\#]/g, blank) : blank(text);
    const isCutOff = inside.split("{").length !== inside.split("}").length; // a quote inside of a field ended it here
    return `${isCutOff ? "\0" : '"'}${inside.slice(1, -1)}"`.slice(0, text.length);
  });
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, " ");
}

/** An import that Monty lacks, unless it stands in the body of a `try`: then the script can do without. */
function findMissingImport(code: string): Found | null {
  const tries: number[] = [];
  let index = 0;
  for (const line of code.split("\n")) {
    const indent = line.search(/\S/);
    if (indent >= 0) {
      while (indent <= (tries.at(-1) ?? -1)) tries.pop();
      if (/^\s*try\s*:/.test(line)) tries.push(indent);
      const module = tries.length > 0 ? undefined : importsOf(line).find((name) => !montyModules.includes(name));
      if (module !== undefined) return { index, what: `imports ${module}, which Monty does not have` };
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

/** `round(x, n)`, and lists and sets beside `<` or `>`: what is inside of brackets has to be told from what is beside them. */
function findInBrackets(code: string): Found | null {
  const open: { readonly isRound: boolean; readonly isValue: boolean; hasList: boolean }[] = [];
  for (const { 0: token, index } of code.matchAll(/[([{]|[)\]}]|,(?!\s*\))/g)) {
    const around = open.at(-1);
    if (token === ",") {
      if (around?.isRound) return { index, what: "rounds with round(x, n), which Monty does by the decimal text" };
    } else if (/[([{]/.test(token)) {
      const before = code.slice(Math.max(0, index - 40), index);
      const isList = token === "(" ? makesList.test(before) : true;
      const isValue =
        makesList.test(before) ||
        !/[\w)\]}"][^\S\n]*$/.test(before) ||
        /\b(?:and|assert|elif|if|in|is|not|or|return|while)\s*$/.test(before);
      if (isList && isLessOrMore.test(before.replace(makesList, ""))) return { index, what: comparison };
      open.push({ isRound: /(?<![\w.]|\bdef\s+)round\s*$/.test(before), isValue, hasList: isList });
    } else {
      const closed = open.pop();
      if (closed === undefined || !closed.isValue || !closed.hasList) continue;
      if (/^\s*[<>]=?(?![<>])/.test(code.slice(index + 1, index + 40))) return { index, what: comparison };
      if (open.length > 0) open.at(-1)!.hasList = true;
    }
  }
  return null;
}

const makesList = /(?<![\w.]|\bdef\s+)(?:list|set|frozenset|sorted)\s*$/;
const isLessOrMore = /(?<![-<>=])[<>]=?\s*(?:\(\s*)*$/;
const comparison = "compares lists or sets with < or >, which Monty does not do";
const float = String.raw`(?:\d[\d_]*\.[\d_]*(?:e[+-]?\d+)?|\.\d[\d_]*(?:e[+-]?\d+)?|\d[\d_]*e[+-]?\d+)`;
const wrongInMonty: readonly { readonly pattern: RegExp; readonly what: string }[] = [
  { pattern: /^[ \t]*@/m, what: "has a decorator, which Monty does not apply" },
  { pattern: /\.\s*(?:now|utcnow|today)\s*\(/, what: "asks for the time, which Monty does not know" },
  {
    pattern: new RegExp(String.raw`%=?[\s(+-]*${float}|(?<![\w.])${float}[\s)]*%`, "i"),
    what: "takes % of a float, which Monty gets wrong where one side is negative",
  },
  { pattern: /\0/, what: "has an f-string with quotes in a field, which is not looked into" },
];

function findWrongInMonty(code: string): Found | null {
  for (const { pattern, what } of wrongInMonty) {
    const index = code.search(pattern);
    if (index >= 0) return { index, what };
  }
  return null;
}
