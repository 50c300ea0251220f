import {
  artifactKinds,
  callLimits,
  contractOperations,
  type ArtifactKind,
  type CodeInterpreterCall,
  type ContractOperation,
} from "./code-interpreter-call.ts";
import { nearestName } from "../../errors/nearest-name.ts";
import { isPythonIdentifier, whyReserved } from "../../protocol/python-names.ts";
import type { ReadableCall } from "./call-problems.ts";

/** Longer code is not repeated to the model that wrote it. */
const MAX_CODE_CHARACTERS = 2_000;

/**
 * A call that would be accepted, as near to the given one as can be said: real aliases, valid names, the caller's own code where nothing is wrong
 * with it. Null while there is no tool output to derive from.
 */
export function correctedExample(
  call: ReadableCall,
  { known, helpers, codeIsFine }: { known: ReadonlySet<string>; helpers: readonly string[]; codeIsFine: boolean },
): CodeInterpreterCall | null {
  const aliases = correctedAliases(call, known);
  const [first] = aliases;
  if (first === undefined) return null;
  const expectedArtifacts = correctedArtifacts(call.expectedArtifacts);
  const inputs = correctedInputs(call.inputs, known, helpers);
  const keepsCode = codeIsFine && call.code !== null && call.code.length <= MAX_CODE_CHARACTERS;
  return {
    code: keepsCode ? (call.code ?? "") : exampleCode(first, expectedArtifacts),
    ...(Object.keys(inputs).length > 0 ? { inputs } : {}),
    postProcessingContract: {
      operation: correctedOperation(call.operation, expectedArtifacts),
      reason: correctedReason(call.reason),
      inputAliases: aliases,
      expectedArtifacts,
    },
  };
}

function correctedAliases({ inputAliases, inputs }: ReadableCall, known: ReadonlySet<string>): string[] {
  const named = [...(inputAliases ?? []), ...inputs.values()].filter((alias) => typeof alias === "string").slice(0, callLimits.aliases);
  const real = named.map((alias) => correctedAlias(alias, known)).filter((alias) => alias !== null);
  const latest = [...known].at(-1);
  return real.length > 0 || latest === undefined ? [...new Set(real)] : [latest];
}

function correctedAlias(alias: string, known: ReadonlySet<string>): string | null {
  return known.has(alias) ? alias : nearestName(alias, known);
}

function correctedInputs(
  inputs: ReadonlyMap<string, unknown>,
  known: ReadonlySet<string>,
  helpers: readonly string[],
): Record<string, string> {
  const corrected = new Map<string, string>();
  for (const [name, alias] of [...inputs].slice(0, callLimits.aliases)) {
    const real = typeof alias === "string" ? correctedAlias(alias, known) : null;
    if (real === null) continue;
    const local = correctedName(name);
    const isTaken =
      corrected.has(local) || !isPythonIdentifier(local) || whyReserved(local, helpers) !== null || (known.has(local) && local !== real);
    if (!isTaken) corrected.set(local, real);
  }
  return Object.fromEntries(corrected);

  function correctedName(name: string): string {
    const spelled = name
      .slice(0, 64)
      .normalize("NFKC")
      .replaceAll(/[^\p{XID_Continue}]+/gu, "_")
      .replace(/^(?=\d)/, "_");
    return whyReserved(spelled, helpers) !== null || (known.has(spelled) && inputs.get(name) !== spelled) ? `${spelled}_data` : spelled;
  }
}

function correctedArtifacts(given: readonly unknown[] | null): ArtifactKind[] {
  return artifactKinds.filter((kind) => given?.includes(kind));
}

function correctedOperation(given: unknown, artifacts: readonly ArtifactKind[]): ContractOperation {
  const near = typeof given === "string" ? nearestName(given, contractOperations) : null;
  return (near as ContractOperation | null) ?? (artifacts.length > 0 ? "chart" : "derive_metric");
}

function correctedReason(given: unknown): string {
  const isFine = typeof given === "string" && given.trim() !== "" && given.length <= 200;
  return isFine ? given.toWellFormed() : "Derive the figure that was asked for from the tool's output.";
}

function exampleCode(alias: string, artifacts: readonly ArtifactKind[]): string {
  return [
    `df = to_frame(${alias})`,
    ...(artifacts.includes("image") ? ["df.plot()", `save_figure("What the figure shows of ${alias}")`] : []),
    ...(artifacts.includes("chart")
      ? ['render_chart({"type": "line", "xKey": df.columns[0], "series": [{"key": df.columns[1]}]}, df)']
      : []),
    "set_result(df.describe())",
  ].join("\n");
}
