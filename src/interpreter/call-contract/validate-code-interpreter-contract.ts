import { nearestName } from "../../errors/nearest-name.ts";
import { refuseArguments, refuseUnreadableArguments } from "../../errors/parse-arguments.ts";
import { describeZodIssues, type Problem } from "../../errors/schema-problems.ts";
import type { ToolError } from "../../errors/tool-error.ts";
import { isPythonIdentifier, whyReserved } from "../../protocol/python-names.ts";
import { aliasProblems, codeProblems, localNameProblems, readCall, type ReadableCall } from "./call-problems.ts";
import {
  artifactKinds,
  callLimits,
  codeInterpreterCallSchema,
  contractOperations,
  type ArtifactKind,
  type CodeInterpreterCall,
  type ContractOperation,
} from "./code-interpreter-call.ts";
import type { PythonParser } from "./python-parser.ts";

export interface ContractContext {
  /** Aliases of the conversation's tool outputs and results, oldest first. */
  readonly aliases: Iterable<string>;
  /** The sandbox's limit for the code of one cell. */
  readonly maxCodeBytes: number;
  /** Names that are globals of every cell. */
  readonly helpers: readonly string[];
  /** Shared by the whole process, so that it stays warm. */
  readonly parser: PythonParser;
}

export type ContractVerdict =
  | { readonly ok: true; readonly call: CodeInterpreterCall }
  | { readonly ok: false; readonly toolError: ToolError };

/**
 * Checks a call before any sandbox is touched. Reports all problems at once, with one example of a call that would be accepted. Never throws because
 * of the input; rejects only if the parser cannot start.
 */
export async function validateCodeInterpreterContract(input: unknown, context: ContractContext): Promise<ContractVerdict> {
  const call = orNull(() => readCall(input));
  if (call === null) return { ok: false, toolError: refuseUnreadableArguments(notRun) };
  const { helpers, parser } = context;
  // Started first: the parser's thread works while the rest is checked here.
  const pendingCodeProblems = call.code === null ? [] : codeProblems(call.code, { parser, maxCodeBytes: context.maxCodeBytes });
  const ofSchema = orNull(() => schemaProblems(normalizeInputs(input, call)));
  const known = new Set(context.aliases);
  const bounded = { ...call, inputs: limitInputs(call.inputs), inputAliases: call.inputAliases?.slice(0, callLimits.aliases) ?? null };
  const ofNames = [...tooManyInputs(call), ...aliasProblems(bounded, known), ...localNameProblems(bounded, known, helpers)];
  const ofCode = await pendingCodeProblems;
  if (ofSchema === null) return { ok: false, toolError: refuseUnreadableArguments(notRun) };
  const problems = [...ofSchema, ...ofNames, ...ofCode];
  if (problems.length === 0) return { ok: true, call: toCall(call) };
  const example = toCorrectedExample(bounded, { known, helpers, isCodeValid: ofCode.length === 0 && call.code !== null });
  return { ok: false, toolError: refuseArguments({ ...notRun, problems, examples: example === null ? [] : [example] }) };
}

const notRun = { tool: "code_interpreter", lead: "The call was not run" } as const;

function schemaProblems(value: unknown): Problem[] {
  const { error } = codeInterpreterCallSchema.safeParse(value);
  return error === undefined ? [] : describeZodIssues({ schema: codeInterpreterCallSchema, value, issues: error.issues });
}

/** Returns null if `read` throws, as it does for a value with throwing getters or proxy traps. */
function orNull<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** Treats `inputs: null` as absent, because some models send it, and drops inputs past the limit, which `tooManyInputs` reports. */
function normalizeInputs(input: unknown, { inputs }: ReadableCall): unknown {
  if (typeof input !== "object" || input === null || !("inputs" in input)) return input;
  if (input.inputs === null) return { ...input, inputs: undefined };
  return inputs.size > callLimits.aliases ? { ...input, inputs: Object.fromEntries(limitInputs(inputs)) } : input;
}

function tooManyInputs({ inputs }: ReadableCall): Problem[] {
  if (inputs.size <= callLimits.aliases) return [];
  return [{ code: "SCHEMA_MAX_ITEMS", path: "inputs", issue: `inputs has more than ${callLimits.aliases} names.`, receivedType: "object" }];
}

function limitInputs(inputs: ReadonlyMap<string, unknown>): ReadonlyMap<string, unknown> {
  return inputs.size <= callLimits.aliases ? inputs : new Map([...inputs].slice(0, callLimits.aliases));
}

/** Returns only the checked fields, without duplicates. */
function toCall({ code, inputs, operation, reason, inputAliases, expectedArtifacts }: ReadableCall): CodeInterpreterCall {
  const contract = { operation, reason, inputAliases: [...new Set(inputAliases)], expectedArtifacts: [...new Set(expectedArtifacts)] };
  return {
    code: code ?? "",
    ...(inputs.size > 0 ? { inputs: Object.fromEntries(inputs) as Record<string, string> } : {}),
    postProcessingContract: contract as CodeInterpreterCall["postProcessingContract"],
  };
}

/** Longer code is replaced by an example, so that the error stays short. */
const MAX_CODE_CHARACTERS = 2_000;

/**
 * Returns a call that would be accepted and is as close to the given one as possible: real aliases, valid names, and the caller's own code if it has no
 * errors. Returns null if there is no tool output yet.
 */
function toCorrectedExample(
  call: ReadableCall,
  { known, helpers, isCodeValid }: { known: ReadonlySet<string>; helpers: readonly string[]; isCodeValid: boolean },
): CodeInterpreterCall | null {
  const aliases = correctAliases(call, known);
  const [first] = aliases;
  if (first === undefined) return null;
  const expectedArtifacts = correctArtifacts(call.expectedArtifacts);
  const inputs = correctInputs(call.inputs, known, helpers);
  const keepsCode = isCodeValid && call.code !== null && call.code.length <= MAX_CODE_CHARACTERS;
  return {
    code: keepsCode ? (call.code ?? "") : exampleCode(first, expectedArtifacts),
    ...(Object.keys(inputs).length > 0 ? { inputs } : {}),
    postProcessingContract: {
      operation: correctOperation(call.operation, expectedArtifacts),
      reason: correctReason(call.reason),
      inputAliases: aliases,
      expectedArtifacts,
    },
  };
}

function correctAliases({ inputAliases, inputs }: ReadableCall, known: ReadonlySet<string>): string[] {
  const requested = [...(inputAliases ?? []), ...inputs.values()].filter((alias) => typeof alias === "string").slice(0, callLimits.aliases);
  const real = requested.map((alias) => correctAlias(alias, known)).filter((alias) => alias !== null);
  const latest = [...known].at(-1);
  return real.length > 0 || latest === undefined ? [...new Set(real)] : [latest];
}

function correctAlias(alias: string, known: ReadonlySet<string>): string | null {
  return known.has(alias) ? alias : nearestName(alias, known);
}

function correctInputs(
  inputs: ReadonlyMap<string, unknown>,
  known: ReadonlySet<string>,
  helpers: readonly string[],
): Record<string, string> {
  const corrected = new Map<string, string>();
  for (const [name, alias] of [...inputs].slice(0, callLimits.aliases)) {
    const real = typeof alias === "string" ? correctAlias(alias, known) : null;
    if (real === null) continue;
    const local = correctName(name);
    const isTaken =
      corrected.has(local) || !isPythonIdentifier(local) || whyReserved(local, helpers) !== null || (known.has(local) && local !== real);
    if (!isTaken) corrected.set(local, real);
  }
  return Object.fromEntries(corrected);

  function correctName(name: string): string {
    const identifier = name
      .slice(0, 64)
      .normalize("NFKC")
      .replaceAll(/[^\p{XID_Continue}]+/gu, "_")
      .replace(/^(?=\d)/, "_");
    return whyReserved(identifier, helpers) !== null || (known.has(identifier) && inputs.get(name) !== identifier)
      ? `${identifier}_data`
      : identifier;
  }
}

function correctArtifacts(kinds: readonly unknown[] | null): ArtifactKind[] {
  return artifactKinds.filter((kind) => kinds?.includes(kind));
}

function correctOperation(operation: unknown, artifacts: readonly ArtifactKind[]): ContractOperation {
  const near = typeof operation === "string" ? nearestName(operation, contractOperations) : null;
  return (near as ContractOperation | null) ?? (artifacts.length > 0 ? "chart" : "derive_metric");
}

function correctReason(reason: unknown): string {
  const isValid = typeof reason === "string" && reason.trim() !== "" && reason.length <= 200;
  return isValid ? reason.toWellFormed() : "Derive the requested figure from the tool's output.";
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
