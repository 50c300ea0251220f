import type { EngineName, ExecuteSettings } from "./contract.ts";
import { montyModules } from "./modules.ts";
import { toTokens, type Token } from "./python-tokens.ts";

export type EngineSetting = ExecuteSettings["engine"];

export interface EngineChoice {
  readonly engine: EngineName;
  /** Why it is not Monty, as a sentence. */
  readonly reason?: string | undefined;
}

/**
 * Decides before anything has run, by one pass over the tokens and no parser: a script that is sent to CPython without need still runs. Syntax that Monty
 * does not support (`class`, `match`, `del`, `yield`) is reported by its own parser, also before anything has run; `unsupportedReason` is the sentence for it.
 */
export function chooseEngine(script: string, setting: EngineSetting): EngineChoice {
  if (setting !== "auto") return { engine: setting };
  const tokens = toTokens(script);
  const found = findMissingImport(script, tokens) ?? findWrongInMonty(tokens);
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

/** An import that Monty lacks, unless it stands in the body of a `try`: then the script can do without. */
function findMissingImport(script: string, tokens: readonly Token[]): Found | null {
  const tries: number[] = [];
  for (const [at, { text, index }] of tokens.entries()) {
    const before = tokens[at - 1]?.text ?? "\n";
    if (before === "\n" && text !== "\n") {
      const indent = index - script.lastIndexOf("\n", index);
      while (indent <= (tries.at(-1) ?? 0)) tries.pop();
      if (text === "try") tries.push(indent);
    }
    if (tries.length > 0 || !isEnd.test(before) || (text !== "import" && text !== "from")) continue;
    const missing = importedAt(tokens, at).find((module) => !module.startsWith(".") && !montyModules.includes(module));
    if (missing !== undefined) return { index, what: `imports ${missing}, which Monty does not have` };
  }
  return null;
}

function importedAt(tokens: readonly Token[], at: number): string[] {
  let words = "";
  for (let next = at + 1; next < tokens.length && !isEnd.test(tokens[next]!.text); next += 1) words += ` ${tokens[next]!.text}`;
  const parts = tokens[at]!.text === "from" ? [words] : words.split(",");
  return parts.map((part) => part.replaceAll(" . ", ".").trim().split(" ")[0]!);
}

/** The end of a statement, or of the head of a block. */
const isEnd = /^[\n;:]$/;
const keywords = "and|as|assert|async|await|elif|else|except|for|from|if|import|in|is|lambda|not|or|raise|return|while|with|yield";
const isKeyword = new RegExp(`^(?:${keywords})$`);
/** What an operand of a comparison does not go beyond. */
const isBoundary = new RegExp(String.raw`^(?:[,;:\n]|[^<>%]*=|${keywords})$`);

type Kind = "group" | "list" | "float" | "round" | "other";

interface Bracket {
  readonly kind: Kind;
  /** What is in the operand so far, and which operator stands before it. */
  operand: { list?: boolean; float?: boolean; isCompared?: boolean; isDivisor?: boolean };
  /** What is in any of its operands. */
  readonly holds: { list?: boolean; float?: boolean };
}

/** What Monty gets wrong without an error, as far as the text shows it. */
function findWrongInMonty(tokens: readonly Token[]): Found | null {
  const open: Bracket[] = [{ kind: "other", operand: {}, holds: {} }];
  for (const [at, { text, index }] of tokens.entries()) {
    const { text: before = "\n" } = tokens[at - 1] ?? {};
    const { text: after = "\n" } = tokens[at + 1] ?? {};
    const closed = /^[)\]}]$/.test(text) && open.length > 1 ? open.pop()! : null;
    const bracket = open.at(-1)!;
    const { operand } = bracket;
    const found: Bracket["holds"] = {};
    if (/^[([{]$/.test(text)) open.push({ kind: kindOf(tokens, at), operand: {}, holds: {} });
    else if (closed !== null) {
      // What is taken from a list, or called on it, is another value.
      if (!/^[.([]$/.test(after)) Object.assign(found, closed.kind === "group" ? closed.holds : { [closed.kind]: true });
    } else if (/^\d[\d_]*[.e]|^\.\d/i.test(text)) found.float = true;
    else if (/^[<>]=?$/.test(text)) {
      if (operand.list) return { index, what: order };
      bracket.operand = { isCompared: true };
    } else if (/^%=?$/.test(text)) {
      if (operand.float) return { index, what: remainder };
      bracket.operand = { isDivisor: true };
    } else if (text === "," && bracket.kind === "round" && after !== ")") return { index, what: rounding };
    else if (isBoundary.test(text)) bracket.operand = {};
    else if (/^[-+]$/.test(text) && isValue(before)) bracket.operand = { ...operand, float: false, isDivisor: false };
    else if (text === "@" && before === "\n") return { index, what: "has a decorator, which Monty does not apply" };
    else if (/^(?:now|utcnow|today)$/.test(text) && before === "." && after === "(") return { index, what: clock };
    if (found.list && operand.isCompared) return { index, what: order };
    if (found.float && operand.isDivisor) return { index, what: remainder };
    Object.assign(bracket.operand, found);
    Object.assign(bracket.holds, found);
  }
  return null;
}

const order = "compares lists or sets with < or >, which Monty does not do";
const remainder = "takes % of a float, which Monty gets wrong where one side is negative";
const rounding = "rounds with round(x, n), which Monty does by the decimal text";
const clock = "asks for the time, which Monty does not know";

function kindOf(tokens: readonly Token[], at: number): Kind {
  const [owner = "\n", name = "\n", bracket] = [tokens[at - 2]?.text, tokens[at - 1]?.text, tokens[at]!.text];
  if (!isValue(name)) return bracket === "(" ? "group" : "list";
  if (bracket !== "(" || owner === "." || owner === "def") return "other";
  if (/^(?:list|set|frozenset|sorted)$/.test(name)) return "list";
  return name === "round" || name === "float" ? name : "other";
}

function isValue(text: string): boolean {
  return /[\w\x80-\uffff"')\]}]$/.test(text) && !isKeyword.test(text);
}
