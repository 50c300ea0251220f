import { isDeepStrictEqual } from "node:util";
import type { PythonToken } from "./tokenize-python.ts";

export interface FailedCall {
  readonly tool: string;
  readonly params: unknown;
}

/**
 * The lines on which a script can have made one of these calls: one, where its text leaves no doubt. For failures that Monty tells without a line, because a
 * `gather` awaited the call. None where `call_tool` goes by another name.
 */
export function findCallLines(tokens: readonly PythonToken[], calls: readonly FailedCall[]): number[] {
  const lines = new Set<number>();
  for (const [index, { text, kind, line }] of tokens.entries()) {
    if (kind !== "name" || text !== "call_tool") continue;
    if (tokens[index + 1]?.text !== "(") return [];
    const name = literalAt(tokens, index + 2);
    const params = paramsAt(tokens, index + 3);
    const isMeant = ({ tool, params: sent }: FailedCall): boolean =>
      (name ?? tool) === tool && (params === null || isDeepStrictEqual(params.value, sent));
    if (calls.some(isMeant)) lines.add(line);
  }
  return [...lines];
}

/** The text of an argument that is a plain string and nothing more. */
function literalAt(tokens: readonly PythonToken[], index: number): string | null {
  const text = tokens[index]?.text ?? "";
  const after = tokens[index + 1]?.text;
  return isPlain.test(text) && (after === "," || after === ")") ? text.slice(1, -1) : null;
}

const isPlain = /^(?:"[^"\\]*"|'[^'\\]*')$/;
const MAX_TOKENS = 200;
const constants: Readonly<Record<string, string>> = { True: "true", False: "false", None: "null" };

/** Parameters that are written out; null where they are not, and have to be known from elsewhere. */
function paramsAt(tokens: readonly PythonToken[], index: number): { readonly value: unknown } | null {
  if (tokens[index]?.text === ")") return { value: {} };
  if (tokens[index]?.text !== "," || tokens[index + 1]?.text !== "{") return null;
  const { depth } = tokens[index + 1]!;
  const length = tokens.slice(index + 2, index + MAX_TOKENS).findIndex((token) => token.text === "}" && token.depth === depth);
  const inside = tokens.slice(index + 1, index + 3 + length).filter(({ kind }) => kind !== "newline");
  const json = inside
    .filter(({ text }, at) => text !== "," || !/^[\]}]$/.test(inside[at + 1]?.text ?? ""))
    .map(toJson)
    .join("");
  try {
    return { value: JSON.parse(json) as unknown };
  } catch {
    return null;
  }
}

function toJson({ text, kind }: PythonToken): string {
  return kind === "string" && isPlain.test(text) ? JSON.stringify(text.slice(1, -1)) : (constants[text] ?? text);
}
