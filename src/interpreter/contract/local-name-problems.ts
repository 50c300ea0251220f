import { isPythonIdentifier, whyReserved } from "../../protocol/python-names.ts";
import { below, quote } from "../../errors/argument-path.ts";
import type { Problem } from "./problem.ts";

/** Local names must be names that Python can bind without taking another one away. */
export function localNameProblems({
  inputs,
  known,
  helpers,
}: {
  inputs: ReadonlyMap<string, unknown>;
  known: ReadonlySet<string>;
  helpers: readonly string[];
}): Problem[] {
  return [...inputs].flatMap(([name, alias]): Problem[] => {
    const path = below("inputs", name);
    if (!isPythonIdentifier(name)) {
      return [
        {
          code: "LOCAL_NAME_INVALID",
          path,
          issue: `The local name ${quote(name)} is not a Python identifier.`,
          receivedType: "string",
          hints: [identifiers],
        },
      ];
    }
    const why = whyReserved(name, helpers) ?? (known.has(name) && alias !== name ? "the alias of another tool output" : null);
    if (why === null) return [];
    return [
      { code: "LOCAL_NAME_RESERVED", path, issue: `The local name ${quote(name)} is ${why}.`, receivedType: "string", hints: [another] },
    ];
  });
}

const identifiers = "Local names are Python identifiers: letters, digits and underscores, not starting with a digit.";
const another = "Choose another local name, or leave inputs out and use the alias itself.";
