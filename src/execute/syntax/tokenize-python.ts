export interface PythonToken {
  readonly kind: "name" | "number" | "string" | "operator" | "newline" | "indent" | "dedent";
  readonly text: string;
  /** Counted from 1. */
  readonly line: number;
  /** How many brackets are open around it; a bracket itself counts as outside. */
  readonly depth: number;
}

const operators = /\*\*=|\/\/=|>>=|<<=|\.\.\.|:=|->|==|!=|<=|>=|\*\*|\/\/|<<|>>|[-+*/%@&|^]=|[^\s\w]/uy;
const names = /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}_]*/uy;
const numbers = /(?:\d[\w]*\.?[\w]*|\.\d[\w]*)(?:(?<=[eE])[-+]\d+)?/uy;
const mayOpenString = /["'rbfutRBFUT]/;
const onlyOperator = /[[\](){},:;=<>+*/%@&|^~!-]/;
const strings = /(?:[rbfutRBFUT]{0,3})(?:"""|'''|"|')/y;

/** A text that is read bit by bit: it may be long, and it is not ours. */
export interface TokenReading {
  /** What was read so far. */
  readonly tokens: readonly PythonToken[];
  /** Reads at most so many tokens, spaces and comments more. True when the text, or its share of tokens, is over. */
  readOn(steps: number): boolean;
}

export function tokenizePython(code: string): readonly PythonToken[] {
  const reading = beginTokens(code);
  reading.readOn(Infinity);
  return reading.tokens;
}

/**
 * A light reading of Python, for questions that a list of tokens answers: what is imported, what is compared. It never fails; whether the text is
 * Python at all is for the interpreter to say. No character is looked at more than a fixed number of times.
 */
export function beginTokens(code: string, { maxTokens = Infinity }: { readonly maxTokens?: number } = {}): TokenReading {
  const tokens: PythonToken[] = [];
  const indents = [0];
  let at = 0;
  let line = 1;
  let depth = 0;
  let atLineStart = true;
  let isOver = false;
  return { tokens, readOn };

  function readOn(steps: number): boolean {
    for (let step = 0; step < steps && !isOver; step += 1) {
      if (at < code.length && tokens.length < maxTokens) readStep();
      else finish();
    }
    return isOver;
  }

  function readStep(): void {
    if (atLineStart && depth === 0) readIndent();
    const character = code[at];
    if (character === undefined) return;
    if (character === "\n") endLine();
    else if (character === "\\" && /\r?\n/y.test(code.slice(at + 1, at + 3))) skipContinuation();
    else if (character === "#") skipComment();
    else if (character === " " || /\s/.test(character)) at += 1;
    else readToken();
  }

  function finish(): void {
    isOver = true;
    push("newline", "");
    for (const _ of indents.slice(1)) push("dedent", "");
  }

  function push(kind: PythonToken["kind"], text: string): void {
    tokens.push({ kind, text, line, depth });
  }

  function readIndent(): void {
    const [space = ""] = /[ \t\f]*/y.exec(code.slice(at, at + 500)) ?? [];
    at += space.length;
    atLineStart = false;
    const next = code[at];
    if (next === undefined || next === "#" || next === "\n" || next === "\r") return;
    const width = [...space].reduce((sum, character) => (character === "\t" ? sum + 8 - (sum % 8) : sum + 1), 0);
    if (width > indents.at(-1)!) {
      indents.push(width);
      push("indent", "");
    }
    while (width < indents.at(-1)!) {
      indents.pop();
      push("dedent", "");
    }
  }

  function endLine(): void {
    const last = tokens.at(-1)?.kind;
    if (depth === 0 && last !== undefined && last !== "newline" && last !== "indent" && last !== "dedent") push("newline", "");
    at += 1;
    line += 1;
    atLineStart = true;
  }

  function skipContinuation(): void {
    at = code.indexOf("\n", at) + 1;
    line += 1;
  }

  function skipComment(): void {
    const end = code.indexOf("\n", at);
    at = end < 0 ? code.length : end;
  }

  function readToken(): void {
    const first = code[at]!;
    const opening = mayOpenString.test(first) ? match(strings) : null;
    if (opening !== null) readString(opening);
    else if (onlyOperator.test(first) || (!take("name", names) && !take("number", numbers))) readOperator();
  }

  function match(pattern: RegExp): string | null {
    pattern.lastIndex = at;
    return pattern.exec(code)?.[0] ?? null;
  }

  function take(kind: "name" | "number", pattern: RegExp): boolean {
    const text = match(pattern);
    if (text === null) return false;
    push(kind, text);
    at += text.length;
    return true;
  }

  function readOperator(): void {
    const text = match(operators) ?? code[at]!;
    if (")]}".includes(text)) depth = Math.max(0, depth - 1);
    push("operator", text);
    if ("([{".includes(text)) depth += 1;
    at += text.length;
  }

  function readString(opening: string): void {
    const end = endOfString(code, at, opening);
    const text = code.slice(at, end);
    push("string", text);
    at = end;
    line += text.split("\n").length - 1;
  }
}

/** Deeper than any text that a person wrote; what follows is then read as if the string were over. */
const MAX_NESTED_STRINGS = 20;

/** Since Python 3.12 the fields of an f-string may hold any expression, quotes of the same kind too. */
export function endOfString(code: string, start: number, opening: string, level = 0): number {
  const quote = /"""|'''|"|'/.exec(opening)![0];
  const prefix = opening.slice(0, -quote.length).toLowerCase();
  const hasFields = prefix.includes("f") || prefix.includes("t");
  let fields = 0;
  for (let at = start + opening.length; at < code.length; at += 1) {
    const character = code[at]!;
    if (character === "\n" && quote.length === 1) return at;
    if (fields === 0) {
      if (character === "\\") at += 1;
      else if (code.startsWith(quote, at)) return at + quote.length;
      else if (hasFields && character === "{") {
        if (code[at + 1] === "{") at += 1;
        else fields = 1;
      }
    } else if (character === "{") fields += 1;
    else if (character === "}") fields -= 1;
    else if (character === '"' || character === "'") {
      if (code.startsWith(quote, at) && !hasPartner(code, at, quote)) return at + quote.length;
      if (level === MAX_NESTED_STRINGS) return at + 1;
      at = endOfString(code, at, code.startsWith(character.repeat(3), at) ? character.repeat(3) : character, level + 1) - 1;
    }
  }
  return code.length;
}

const PARTNER_CHARACTERS = 1_000;

/** A quote of the string's own kind inside a field begins a text of its own only if that text, and the field, end soon and on the same line. */
function hasPartner(code: string, at: number, quote: string): boolean {
  const near = code.slice(at + quote.length, at + PARTNER_CHARACTERS);
  const lineEnd = quote.length === 3 ? -1 : near.indexOf("\n");
  const end = near.indexOf(quote);
  return end >= 0 && (lineEnd < 0 || end < lineEnd) && near.indexOf("}") >= 0;
}

/** Whether a statement begins after this token. */
export function isStatementStart(before: PythonToken | undefined): boolean {
  return before === undefined || ["newline", "indent", "dedent"].includes(before.kind) || before.text === ";" || before.text === ":";
}

/** What follows makes another value of it: an item, an attribute, a call. */
export function isAccess(after: PythonToken | undefined): boolean {
  return after?.text === "[" || after?.text === "." || after?.text === "(";
}

/** Whether a bracket after this token belongs to it: `xs[0]` and not `return [0]`. */
export function isOperand(before: PythonToken | undefined): boolean {
  if (before === undefined) return false;
  if (before.kind === "string" || before.text === ")" || before.text === "]" || before.text === "}") return true;
  return before.kind === "name" && !keywords.has(before.text);
}

const keywords = new Set(["return", "and", "or", "not", "in", "is", "if", "else", "elif", "while", "assert", "await", "lambda", "yield"]);
