import type { Brackets } from "./read-brackets.ts";
import { isAccess, isOperand, isStatementStart, type PythonToken } from "./tokenize-python.ts";

/** A construct that Monty takes and gets wrong without a word, where a token shows it. The lines that it is on are told in one sentence. */
export interface WrongConstruct {
  /** Tokens at which it is looked for: the text may be long, and few of its tokens need a look. */
  readonly tokens: readonly string[];
  readonly isAt: (script: ReadTokens, index: number) => boolean;
  readonly say: (place: string, s: string) => string;
}

export interface ReadTokens {
  readonly tokens: readonly PythonToken[];
  readonly brackets: Brackets;
}

/** Each is in the list of claims, with scripts that show it. Only what is surely so counts, or what is so for values that are nothing special. */
export const wrongConstructs: readonly WrongConstruct[] = [
  {
    tokens: ["==", "!="],
    isAt: isFrozenBeside,
    say: (place, s) => `${place} compare${s} a frozenset with a set: in Monty they are never equal. Compare sets: set(x) == y.`,
  },
  {
    tokens: ["round"],
    isAt: (script, index) => argumentsOf(script, index, "round") >= 2,
    say: (place, s) =>
      `${place} round${s} with round(x, n): Monty rounds ties by the decimal text, so that round(2.675, 2) is 2.68 where CPython says 2.67. Round for display only.`,
  },
  {
    tokens: ["sum"],
    isAt: (script, index) => isCall(script, index, "sum") && insideOf(script, index + 1).some(isFloat),
    say: (place, s) =>
      `${place} add${s} up floats with sum: Monty does not compensate the rounding as CPython does; the last digits differ.`,
  },
  {
    tokens: ["%", "%="],
    isAt: isFloatRemainder,
    say: (place, s) =>
      `${place} take${s} % of a float: when one side is negative, Monty keeps the sign of the left one (-7.5 % 2 is -1.5). Use x - n * math.floor(x / n).`,
  },
  {
    tokens: ["int"],
    isAt: (script, index) =>
      isCall(script, index, "int") && insideOf(script, index + 1).some((token) => isFloat(token) && valueOf(token) >= 2 ** 63),
    say: (place, s) =>
      `${place} make${s} an int of a float past 2**63: Monty gives 9223372036854775807. Write the integer itself, as 10**20.`,
  },
  {
    tokens: ["<", ">", "<=", ">=", "==", "!="],
    isAt: isInexactComparison,
    say: (place, s) => `${place} compare${s} an integer past 2**53 with a float: Monty compares them as floats. Compare integers.`,
  },
  {
    tokens: ["str"],
    isAt: (script, index) => isCall(script, index, "str") && isOddText(script, index + 2),
    say: (place, s) =>
      `${place} make${s} text of a very large or small float: Monty writes it without an exponent, and nan as NaN.0. Use f'{x:e}'.`,
  },
  {
    tokens: ["any", "all"],
    isAt: (script, index) => (isCall(script, index, "any") || isCall(script, index, "all")) && isGeneratorWithCall(script, index + 1),
    say: (place, s) =>
      `${place} call${s} a function in any or all: Monty calls it for every item, also after the answer is known. Write a loop with break.`,
  },
  {
    tokens: ["="],
    isAt: isStoredIterator,
    say: (place, s) =>
      `${place} keep${s} an iterator in a name: in Monty it is a list, made at once, which can be gone through twice. Write list(...) to say so.`,
  },
  {
    tokens: ["@"],
    isAt: ({ tokens }, index) => isDecorator(tokens, index),
    say: (place, s) => `${place} ha${s === "" ? "ve" : "s"} a decorator: Monty does not apply it. Wrap the function by hand.`,
  },
  {
    tokens: ["hasattr"],
    isAt: (script, index) => isCall(script, index, "hasattr"),
    say: (place, s) =>
      `${place} ask${s} with hasattr: in Monty it is False for the methods of built-in values. Know the shape of your data instead.`,
  },
];

/** Lines with a decorator. */
export function findDecorators(tokens: readonly PythonToken[]): number[] {
  return tokens.filter((_, index) => isDecorator(tokens, index)).map(({ line }) => line);
}

function isDecorator(tokens: readonly PythonToken[], index: number): boolean {
  return tokens[index]!.text === "@" && tokens[index]!.depth === 0 && isStatementStart(tokens[index - 1]);
}

function isCall({ tokens }: ReadTokens, index: number, name: string): boolean {
  return (
    tokens[index]?.text === name && tokens[index + 1]?.text === "(" && tokens[index - 1]?.text !== "." && tokens[index - 1]?.text !== "def"
  );
}

/** What stands between a bracket and its partner. */
function insideOf({ tokens, brackets }: ReadTokens, open: number): readonly PythonToken[] {
  return tokens.slice(open + 1, Math.max(open + 1, Math.min(brackets.partner(open), open + MAX_INSIDE)));
}

/** A few lines of a literal; every construct is looked at, so none may take long. */
const MAX_INSIDE = 200;

function argumentsOf(script: ReadTokens, index: number, name: string): number {
  if (!isCall(script, index, name)) return 0;
  const depth = script.tokens[index + 1]!.depth + 1;
  const inside = insideOf(script, index + 1);
  return inside.length === 0
    ? 0
    : 1 + inside.filter((token, at) => token.text === "," && token.depth === depth && at < inside.length - 1).length;
}

function isFrozenBeside(script: ReadTokens, index: number): boolean {
  const sides = new Set([kindBefore(script, index), kindAfter(script, index)]);
  return sides.has("frozenset") && sides.has("set");
}

function kindBefore({ tokens, brackets }: ReadTokens, index: number): string | undefined {
  const open = brackets.partner(index - 1);
  if (tokens[index - 1]?.text === "}" && brackets.isCollection(open) && !isOperand(tokens[open - 1])) return "set";
  return tokens[index - 1]?.text === ")" && tokens[open - 2]?.text !== "." ? tokens[open - 1]?.text : undefined;
}

function kindAfter({ tokens, brackets }: ReadTokens, index: number): string | undefined {
  const open = tokens[index + 1]?.text === "{" ? index + 1 : index + 2;
  if (isAccess(tokens[brackets.partner(open) + 1])) return undefined;
  if (open === index + 1) return brackets.isCollection(open) ? "set" : undefined;
  return tokens[open]?.text === "(" ? tokens[index + 1]?.text : undefined;
}

function isFloatRemainder(script: ReadTokens, index: number): boolean {
  const { tokens, brackets } = script;
  const before = tokens[index - 1];
  const isFloatBefore = isFloat(before) || (before?.text === ")" && isCall(script, brackets.partner(index - 1) - 1, "float"));
  const after = tokens[index + 1]?.text === "-" ? index + 2 : index + 1;
  return before?.kind !== "string" && (isFloatBefore || isFloat(tokens[after]) || isCall(script, after, "float"));
}

function isInexactComparison({ tokens }: ReadTokens, index: number): boolean {
  const sides = [tokens[index - 1], tokens[index + 1]?.text === "-" ? tokens[index + 2] : tokens[index + 1]];
  return sides.some(isFloat) && sides.some((side) => side?.kind === "number" && !isFloat(side) && valueOf(side) >= 2 ** 53);
}

function isOddText({ tokens }: ReadTokens, index: number): boolean {
  const first = tokens[index]?.text === "-" ? index + 1 : index;
  const token = tokens[first];
  if (token?.text === "float") return /^["'](?:nan|NaN|-?inf)["']$/.test(tokens[first + 2]?.text ?? "");
  const value = isFloat(token) ? valueOf(token!) : 1;
  return tokens[first + 1]?.text === ")" && (value >= 1e16 || (value > 0 && value < 1e-4));
}

function isGeneratorWithCall(script: ReadTokens, open: number): boolean {
  const inside = insideOf(script, open);
  const loop = inside.findIndex(({ text, depth }) => text === "for" && depth === script.tokens[open]!.depth + 1);
  return inside
    .slice(0, Math.max(0, loop))
    .some(({ text }, at) => text === "(" && inside[at - 1]?.kind === "name" && !calm.has(inside[at - 1]!.text));
}

/** Called once more or less, these make no difference. */
const calm = new Set([
  "len",
  "str",
  "int",
  "float",
  "abs",
  "bool",
  "isinstance",
  "min",
  "max",
  "round",
  "sorted",
  "set",
  "list",
  "tuple",
  "and",
  "or",
  "not",
  "in",
  "is",
  "if",
  "else",
]);

function isStoredIterator(script: ReadTokens, equals: number): boolean {
  const { tokens, brackets } = script;
  const name = tokens[equals - 1];
  if (name?.kind !== "name" || name.depth > 0 || !isStatementStart(tokens[equals - 2])) return false;
  const isMade = ["map", "zip", "enumerate", "reversed"].some((name) => isCall(script, equals + 1, name));
  const open = isMade ? equals + 2 : equals + 1;
  const end = tokens[brackets.partner(open) + 1];
  if (tokens[open]?.text !== "(" || (end !== undefined && end.kind !== "newline" && end.text !== ";")) return false;
  const depth = tokens[open].depth + 1;
  return isMade || insideOf(script, open).some((token) => token.text === "for" && token.depth === depth);
}

function isFloat(token: PythonToken | undefined): boolean {
  return token?.kind === "number" && /^[\d_]*(?:\.[\d_]*(?:[eE].*)?|[eE].*)$/.test(token.text);
}

function valueOf({ text }: PythonToken): number {
  return Number(text.replaceAll("_", ""));
}
