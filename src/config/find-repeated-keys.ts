import { toPathText } from "../errors/argument-path.ts";
import { forEachPart } from "../text/json.ts";
import type { ConfigurationProblem } from "./expand-references.ts";

/** Keys that an object has twice. JSON.parse takes the last one and is silent, which loses half of `mcpServers`. The text must be JSON. */
export function findRepeatedKeys(text: string): ConfigurationProblem[] {
  const problems: ConfigurationProblem[] = [];
  const walk = (path: readonly PropertyKey[], start: number): number => {
    const keys = new Set<PropertyKey>();
    return forEachPart(text, start, (key, from) => {
      const at = [...path, key];
      if (keys.has(key)) problems.push({ path: toPathText(at), problem: "is there twice." });
      keys.add(key);
      return walk(at, from);
    });
  };
  walk([], 0);
  return problems;
}
