import { readBrackets, type Brackets } from "./read-brackets.ts";
import { withFields } from "./read-fields.ts";
import { isAccess, isOperand, isStatementStart, type PythonToken } from "./tokenize-python.ts";
import { wrongConstructs, type ReadTokens, type WrongConstruct } from "./wrong-constructs.ts";

/** What Monty takes and gets wrong without a word, as far as it can be seen in the text: one sentence for each kind, with its lines. */
export function findSilentlyWrong(script: readonly PythonToken[]): string[] {
  const tokens = withFields(script);
  const brackets = readBrackets(tokens);
  const compared = findComparedCollections(tokens, brackets);
  const found = findConstructs({ tokens, brackets });
  const others = wrongConstructs.map((construct) => sentence(found.get(construct) ?? new Set(), construct.say));
  const order = sentence(
    compared,
    (place, s) =>
      `${place} compare${s} lists or sets with < or >: in Monty that is always False. Compare tuples (tuple(x) < tuple(y)), or use a.issubset(b).`,
  );
  return [...order, ...others.flat()];
}

function findConstructs(script: ReadTokens): ReadonlyMap<WrongConstruct, ReadonlySet<number>> {
  const byToken = Map.groupBy(
    wrongConstructs.flatMap((construct) => construct.tokens.map((text) => ({ text, construct }))),
    ({ text }) => text,
  );
  const found = new Map<WrongConstruct, Set<number>>();
  for (const [index, { text, line }] of script.tokens.entries()) {
    for (const { construct } of byToken.get(text) ?? []) {
      if (construct.isAt(script, index)) found.set(construct, (found.get(construct) ?? new Set()).add(line));
    }
  }
  return found;
}

function sentence(lines: ReadonlySet<number>, say: (place: string, s: string) => string): string[] {
  if (lines.size === 0) return [];
  const shown = [...lines].slice(0, SHOWN_LINES);
  const more = lines.size - shown.length;
  const place = `${lines.size === 1 ? "Line" : "Lines"} ${shown.join(", ")}${more === 0 ? "" : ` and ${more} more`}`;
  return [say(place, lines.size === 1 ? "s" : "")];
}

const SHOWN_LINES = 10;

/** An order between lists or sets. Only what is surely one counts, so that numbers never give an alarm. Every step is one pass: the text is not ours. */
function findComparedCollections(tokens: readonly PythonToken[], brackets: Brackets): ReadonlySet<number> {
  const names = findCollectionNames(tokens, brackets);
  const lines = new Set<number>();
  for (const [index, { text, line }] of tokens.entries()) {
    if (text !== "<" && text !== ">" && text !== "<=" && text !== ">=") continue;
    if (isCollectionBefore(index) || isCollectionAfter(index)) lines.add(line);
  }
  return lines;

  function isCollectionAfter(operator: number): boolean {
    const first = tokens[operator + 1];
    if (first === undefined) return false;
    if (first.kind === "name") return names.has(first.text) && !isAccess(tokens[operator + 2]);
    return holdsCollection(operator + 1) && !isAccess(tokens[brackets.partner(operator + 1) + 1]);
  }

  function isCollectionBefore(operator: number): boolean {
    const last = tokens[operator - 1];
    if (last === undefined) return false;
    if (last.kind === "name") return names.has(last.text) && tokens[operator - 2]?.text !== ".";
    if (last.text !== "]" && last.text !== "}" && last.text !== ")") return false;
    const begin = brackets.partner(operator - 1);
    return holdsCollection(begin) && !isOperand(tokens[begin - 1]);
  }

  /** A list or a set, or a tuple with one of them as its first or second item. */
  function holdsCollection(open: number): boolean {
    if (brackets.isCollection(open)) return true;
    if (tokens[open]?.text !== "(") return false;
    if (brackets.isCollection(open + 1)) return tokens[brackets.partner(open + 1) + 1]?.text === ",";
    return tokens[open + 2]?.text === "," && brackets.isCollection(open + 3);
  }
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
