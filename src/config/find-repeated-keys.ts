import { toPathText } from "../errors/argument-path.ts";
import type { ConfigurationProblem } from "./expand-references.ts";

/** A string, or one of the signs that objects and lists are made of. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]/g;

interface Open {
  readonly path: readonly PropertyKey[];
  /** Of an object; null for a list. */
  readonly keys: Set<string> | null;
  /** Where the next value stands. */
  at: PropertyKey;
}

/** Keys that an object has twice. JSON.parse takes the last one and is silent, which loses half of `mcpServers`. The text must be JSON. */
export function findRepeatedKeys(text: string): ConfigurationProblem[] {
  const problems: ConfigurationProblem[] = [];
  const open: Open[] = [];
  let word: string | null = null;
  for (const [sign] of text.matchAll(token)) {
    const inside = open.at(-1);
    if (sign === "{" || sign === "[") {
      const path = inside === undefined ? [] : [...inside.path, inside.at];
      open.push(sign === "{" ? { path, keys: new Set(), at: "" } : { path, keys: null, at: 0 });
    } else if (sign === "}" || sign === "]") open.pop();
    else if (sign === "," && typeof inside?.at === "number") inside.at += 1;
    else if (sign === ":" && inside?.keys && word !== null) {
      const key = JSON.parse(word) as string;
      if (inside.keys.has(key)) problems.push({ path: toPathText([...inside.path, key]), problem: "is there twice." });
      inside.keys.add(key);
      inside.at = key;
    } else if (sign.startsWith('"')) word = sign;
  }
  return problems;
}
