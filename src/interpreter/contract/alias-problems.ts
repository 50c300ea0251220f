import { nearestName } from "../../errors/nearest-name.ts";
import { below, quote } from "../../errors/argument-path.ts";
import type { Problem } from "./problem.ts";

/** How many names a hint lists before it only counts. */
const LISTED = 20;

const derivesOnly = "Python derives from tool outputs, it does not acquire: name the aliases that the code reads.";

/** The contract names at least one alias, and every alias that the call names is known. */
export function aliasProblems({
  inputAliases,
  inputs,
  known,
}: {
  inputAliases: readonly unknown[] | null;
  inputs: ReadonlyMap<string, unknown>;
  known: ReadonlySet<string>;
}): Problem[] {
  const problems: Problem[] = [];
  const path = "postProcessingContract.inputAliases";
  if (inputAliases?.length === 0) {
    problems.push({
      code: "ALIAS_REQUIRED",
      path,
      issue: "The contract names no alias; at least one is needed.",
      receivedType: "array",
      hints: [derivesOnly, knownAliases(known)],
    });
  }
  for (const [index, alias] of (inputAliases ?? []).entries()) problems.push(...unknownAlias(alias, below(path, index), known));
  for (const [name, alias] of inputs) problems.push(...unknownAlias(alias, below("inputs", name), known));
  return problems;
}

function unknownAlias(alias: unknown, path: string, known: ReadonlySet<string>): Problem[] {
  if (typeof alias !== "string" || known.has(alias)) return [];
  const near = nearestName(alias, known);
  const meant = near === null ? "" : ` Did you mean ${quote(near)}?`;
  return [
    {
      code: "ALIAS_UNKNOWN",
      path,
      issue: `No tool output has the alias ${quote(alias)}.${meant}`,
      receivedType: "string",
      hints: [knownAliases(known)],
    },
  ];
}

function knownAliases(known: ReadonlySet<string>): string {
  if (known.size === 0) return "There are no tool outputs yet: call a tool that gets the data first, then use the alias of its output.";
  const listed = [...known].slice(-LISTED);
  const more = known.size > LISTED ? ` and ${known.size - LISTED} older ones` : "";
  return `Known aliases: ${listed.join(", ")}${more}.`;
}
