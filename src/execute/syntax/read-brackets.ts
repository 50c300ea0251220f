import type { PythonToken } from "./tokenize-python.ts";

export interface Brackets {
  /** The index of the bracket that closes, or opens, the one at `index`; `index` itself where there is none. */
  partner(index: number): number;
  /** Whether a list or a set begins here: `[…]`, or `{…}` with something in it and no colon of a dict. */
  isCollection(index: number): boolean;
}

export function readBrackets(tokens: readonly PythonToken[]): Brackets {
  const partners = new Map<number, number>();
  const dicts = new Set<number>();
  const open: number[] = [];
  for (const [index, { text }] of tokens.entries()) {
    if (text === "(" || text === "[" || text === "{") open.push(index);
    else if (text === ")" || text === "]" || text === "}") {
      const begin = open.pop();
      if (begin === undefined) continue;
      partners.set(begin, index).set(index, begin);
      if (begin === index - 1) dicts.add(begin);
    } else if ((text === ":" || text === "**") && open.length > 0) dicts.add(open.at(-1)!);
  }
  return {
    partner: (index) => partners.get(index) ?? index,
    isCollection: (index) => tokens[index]?.text === "[" || (tokens[index]?.text === "{" && partners.has(index) && !dicts.has(index)),
  };
}
