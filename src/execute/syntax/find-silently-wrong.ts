import { readBrackets, type Brackets } from "./read-brackets.ts";
import type { PythonToken } from "./tokenize-python.ts";

/**
 * What Monty takes and gets wrong without a word, as far as it can be seen in the text: an order between lists or sets, which is always False there.
 * Only what is surely a list or a set counts, so that numbers never give an alarm. Every step is one pass: the text is not ours.
 */
export function findSilentlyWrong(tokens: readonly PythonToken[]): string[] {
  const brackets = readBrackets(tokens);
  const names = findCollectionNames(tokens, brackets);
  const lines = new Set<number>();
  for (const [index, { text, line }] of tokens.entries()) {
    if (text !== "<" && text !== ">" && text !== "<=" && text !== ">=") continue;
    if (isCollectionBefore(index) || isCollectionAfter(index)) lines.add(line);
  }
  return [...lines].map(
    (line) =>
      `Line ${line} compares lists or sets with < or >: in Monty that is always False. Compare tuples (tuple(x) < tuple(y)), or use a.issubset(b).`,
  );

  function isCollectionAfter(operator: number): boolean {
    const first = tokens[operator + 1];
    if (first === undefined) return false;
    if (first.kind === "name") return names.has(first.text) && !isAccess(tokens[operator + 2]);
    return brackets.isCollection(operator + 1) && !isAccess(tokens[brackets.partner(operator + 1) + 1]);
  }

  function isCollectionBefore(operator: number): boolean {
    const last = tokens[operator - 1];
    if (last === undefined) return false;
    if (last.kind === "name") return names.has(last.text) && tokens[operator - 2]?.text !== ".";
    if (last.text !== "]" && last.text !== "}") return false;
    const begin = brackets.partner(operator - 1);
    return brackets.isCollection(begin) && !isOperand(tokens[begin - 1]);
  }
}

/** Lines with a decorator: Monty reads it and does not apply it. */
export function findDecorators(tokens: readonly PythonToken[]): number[] {
  return tokens
    .filter(({ text, depth }, index) => text === "@" && depth === 0 && isStatementStart(tokens[index - 1]))
    .map(({ line }) => line);
}

/** Names to which nothing but lists and sets is ever bound. */
function findCollectionNames(tokens: readonly PythonToken[], brackets: Brackets): Set<string> {
  const known = new Set<string>();
  const other = new Set<string>();
  let targets: "for" | "def" | "lambda" | null = null;
  for (const [index, { kind, text, depth }] of tokens.entries()) {
    if (text === "for" || text === "lambda" || text === "def") targets = text;
    else if (targets !== null && endsTargets(targets, text, depth)) targets = null;
    if (kind !== "name") continue;
    const [before, after] = [tokens[index - 1], tokens[index + 1]];
    if (targets !== null || bindingWords.has(before?.text ?? "") || after?.text === ":=") other.add(text);
    else if (after?.text === "=" && depth === 0) {
      if (isStatementStart(before) && isCollectionValue(tokens, index + 2, brackets)) known.add(text);
      else other.add(text);
    } else if (depth === 0 && (after?.text === "," || before?.text === ",")) other.add(text); // perhaps one of several targets
  }
  return known.difference(other);
}

const bindingWords = new Set(["as", "global", "nonlocal", "import"]);

function endsTargets(targets: "for" | "def" | "lambda", text: string, depth: number): boolean {
  if (targets === "for") return text === "in";
  return text === ":" && (targets === "lambda" || depth === 0);
}

/** A literal or `list(…)`, `sorted(…)`, `set(…)`, alone on its line. */
function isCollectionValue(tokens: readonly PythonToken[], at: number, brackets: Brackets): boolean {
  const isCall = /^(?:list|sorted|set)$/.test(tokens[at]?.text ?? "") && tokens[at + 1]?.text === "(";
  if (!isCall && !brackets.isCollection(at)) return false;
  const next = tokens[brackets.partner(isCall ? at + 1 : at) + 1];
  return next === undefined || next.kind === "newline" || next.text === ";";
}

function isStatementStart(before: PythonToken | undefined): boolean {
  return before === undefined || ["newline", "indent", "dedent"].includes(before.kind) || before.text === ";" || before.text === ":";
}

/** What follows makes another value of it: an item, an attribute, a call. */
function isAccess(after: PythonToken | undefined): boolean {
  return after?.text === "[" || after?.text === "." || after?.text === "(";
}

/** Whether a bracket after this token belongs to it: `xs[0]` and not `return [0]`. */
function isOperand(before: PythonToken | undefined): boolean {
  if (before === undefined) return false;
  if (before.kind === "string" || before.text === ")" || before.text === "]" || before.text === "}") return true;
  return before.kind === "name" && !keywords.has(before.text);
}

const keywords = new Set(["return", "and", "or", "not", "in", "is", "if", "else", "elif", "while", "assert", "await", "lambda", "yield"]);
