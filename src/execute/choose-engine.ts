import type { EngineName, ExecuteSettings } from "./contract.ts";
import { montyModules, runsNowhere } from "./modules.ts";

export type EngineSetting = ExecuteSettings["engine"];

export interface EngineChoice {
  readonly engine: EngineName;
  /** Why it is not Monty, as a sentence. */
  readonly reason?: string | undefined;
}

/**
 * Decides before anything has run. A few expressions over the text, no parser: a script that is sent to CPython without need still runs. Syntax that Monty
 * does not support (`class`, `match`, `del`, `yield`) is reported by its own parser, also before anything has run; `unsupportedReason` is the sentence for it.
 */
export function chooseEngine(script: string, setting: EngineSetting): EngineChoice {
  if (setting !== "auto") return { engine: setting };
  const code = withoutTexts(script);
  const found = findMissingImport(code) ?? findRoundToDigits(code) ?? findWrongInMonty(code);
  if (found === null) return { engine: "monty" };
  return { engine: "cpython", reason: `Line ${code.slice(0, found.index).split("\n").length} ${found.what}.` };
}

export function unsupportedReason({ message, line }: { readonly message: string; readonly line?: number | undefined }): string {
  return `${line === undefined ? "" : `Line ${line}: `}${message.replace(/^The monty syntax parser does not yet support /, "Monty does not support ")}.`;
}

interface Found {
  readonly index: number;
  readonly what: string;
}

/** Comments and string literals. Unterminated ones end with their line, or with the script, so that every text is read once. */
const texts = /#.*|(?:\b[bruft]{1,2})?(?:("""|''')(?:\\[^]|(?!\1)[^\\])*(?:\1|$)|"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?)/gi;

/** The script with its comments and strings emptied; of f-strings the expressions stay, without their formats. Lines stay where they are. */
function withoutTexts(script: string): string {
  return script.replaceAll(texts, (text) => {
    if (text.startsWith("#")) return "";
    const fields = /^[br]?[ft]/i.test(text) ? (text.match(/(?<=\{)[^{}\n]*(?=\})/g) ?? []) : [];
    const expressions = fields.map((field) => field.replace(/:[^:()[\]]*$/, ""));
    return `"${expressions.join(";")}"${"\n".repeat(text.split("\n").length - 1)}`;
  });
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
      const module = tries.length > 0 ? undefined : importsOf(line).find((name) => !montyModules.includes(name) && !runsNowhere(name));
      if (module !== undefined) return { index, what: `imports ${module}, which Monty does not have` };
    }
    index += line.length + 1;
  }
  return null;
}

function importsOf(line: string): string[] {
  return [...line.matchAll(/(?:^|[;:])\s*(?:import\s+([\w.][^;]*)|from\s+(\w[\w.]*)\s+import\b)/g)].flatMap(
    ([, modules, from = ""]) => modules?.split(",").map((part) => part.trim().split(/\s/)[0]!) ?? [from],
  );
}

function findRoundToDigits(code: string): Found | null {
  const open: boolean[] = [];
  for (const { 0: token, index } of code.matchAll(/(?<![\w.]|\bdef\s)round\s*\(|[([{]|[)\]}]|,(?!\s*\))/g)) {
    if (/^[)\]}]/.test(token)) open.pop();
    else if (token !== ",") open.push(token.startsWith("round"));
    else if (open.at(-1) === true) return { index, what: "rounds with round(x, n), which Monty does by the decimal text" };
  }
  return null;
}

const float = String.raw`(?:\d[\d_]*\.[\d_]*|\.\d[\d_]*)(?:e[+-]?\d+)?`;
const wrongInMonty: readonly { readonly pattern: RegExp; readonly what: string }[] = [
  { pattern: /^[ \t]*@/m, what: "has a decorator, which Monty does not apply" },
  { pattern: /\b(?:date\.today|datetime\.(?:now|utcnow|today))\s*\(/, what: "asks for the time, which Monty does not know" },
  {
    pattern: /(?<![<>=-])[<>]=?\s*[[{]|(?<=(?:^|[=(,[{:;]|\b(?:return|and|or|not|if|elif|while|in|assert))\s*)[[{][^[\]{}]*[\]}]\s*[<>]/m,
    what: "compares lists or sets with < or >, which Monty does not do",
  },
  {
    pattern: new RegExp(String.raw`%=?\s*-?${float}|(?<![\w.])${float}\s*%`, "i"),
    what: "takes % of a float, which Monty gets wrong where one side is negative",
  },
];

function findWrongInMonty(code: string): Found | null {
  for (const { pattern, what } of wrongInMonty) {
    const index = code.search(pattern);
    if (index >= 0) return { index, what };
  }
  return null;
}
