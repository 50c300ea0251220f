import type { PythonToken } from "./tokenize-python.ts";

/**
 * The line on which a script calls this tool, where the text leaves no doubt: no other `call_tool(…)` in it can have been meant. For failures that Monty
 * tells without a line, because a `gather` awaited the call.
 */
export function findCallLine(tokens: readonly PythonToken[], tool: string): number | null {
  const lines: number[] = [];
  for (const [index, { text, kind, line }] of tokens.entries()) {
    if (kind !== "name" || text !== "call_tool") continue;
    if (tokens[index + 1]?.text !== "(") return null; // it has another name from here on
    const name = literalAt(tokens, index + 2);
    if (name === null || name === tool) lines.push(line);
  }
  return lines.length === 1 ? lines[0]! : null;
}

/** The text of an argument that is a plain string and nothing more. */
function literalAt(tokens: readonly PythonToken[], index: number): string | null {
  const text = tokens[index]?.text ?? "";
  const after = tokens[index + 1]?.text;
  return /^(?:"[^"\\]*"|'[^'\\]*')$/.test(text) && (after === "," || after === ")") ? text.slice(1, -1) : null;
}
