import { createEnvelope, type Envelope } from "../../errors/envelope.ts";
import type { EnvelopeCode } from "../../errors/envelope-table.ts";
import { aliasProblems } from "./alias-problems.ts";
import { callLimits, codeInterpreterCallSchema, type CodeInterpreterCall } from "./code-interpreter-call.ts";
import { codeProblems } from "./code-problems.ts";
import { correctedExample } from "./corrected-example.ts";
import { localNameProblems } from "./local-name-problems.ts";
import type { Problem } from "./problem.ts";
import type { PythonParser } from "./python-parser.ts";
import { readCall, type ReadableCall } from "./readable-call.ts";
import { schemaProblems } from "./schema-problems.ts";
import { snapshotModules } from "./snapshot-modules.ts";

export interface ContractContext {
  /** Of the conversation's tool outputs and results, oldest first. */
  readonly aliases: Iterable<string>;
  /** Python packages of the snapshot's manifest, name to version. */
  readonly packages: Readonly<Record<string, string>>;
  /** Names that are globals of every cell. */
  readonly helpers: readonly string[];
  /** One for the whole process: it stays warm. */
  readonly parser: PythonParser;
}

export type ContractVerdict =
  | { readonly ok: true; readonly call: CodeInterpreterCall }
  | { readonly ok: false; readonly envelope: Envelope };

/**
 * Decides whether a call may be run, before any sandbox is touched. Everything that is wrong is reported at once, with one call that would be
 * accepted. Whatever the input is, the answer is a verdict; only a parser that cannot be started is an exception.
 */
export async function validateCodeInterpreterContract(input: unknown, context: ContractContext): Promise<ContractVerdict> {
  const call = orNull(() => readCall(input));
  if (call === null) return { ok: false, envelope: unreadable() };
  const { helpers, parser } = context;
  // Begun first: the parser's thread works while the rest is looked at here.
  const checkingCode = call.code === null ? [] : codeProblems(call.code, { parser, modules: () => snapshotModules(context.packages) });
  const ofSchema = orNull(() => schemaProblems(codeInterpreterCallSchema, toCheck(input, call)));
  const known = new Set(context.aliases);
  const bounded = { ...call, inputs: firstOf(call.inputs), inputAliases: call.inputAliases?.slice(0, callLimits.aliases) ?? null };
  const ofNames = [...tooManyInputs(call), ...aliasProblems({ ...bounded, known }), ...localNameProblems({ ...bounded, known, helpers })];
  const ofCode = await checkingCode;
  if (ofSchema === null) return { ok: false, envelope: unreadable() };
  const problems = [...ofSchema, ...ofNames, ...ofCode];
  if (problems.length === 0) return { ok: true, call: toCall(call) };
  const example = correctedExample(bounded, { known, helpers, codeIsFine: ofCode.length === 0 && call.code !== null });
  return { ok: false, envelope: toEnvelope(problems, example) };
}

const TOOL = "code_interpreter";

function toEnvelope(problems: readonly Problem[], example: CodeInterpreterCall | null): Envelope {
  const [first] = problems;
  const codes = new Set(problems.map(({ code }) => code));
  const code: EnvelopeCode = codes.size === 1 && first ? first.code : "INPUT_VALIDATION_FAILED";
  return createEnvelope({
    code,
    tool: TOOL,
    summary: problems.length === 1 && first ? `The call was not run. ${first.issue}` : `The call was not run: ${problems.length} problems.`,
    details: problems.map(({ code, path, issue, receivedType, line, column }) => ({
      path,
      issue,
      received_type: receivedType,
      error_code: code,
      line,
      column,
    })),
    hints: problems.flatMap(({ hints }) => hints ?? []),
    examples: example === null ? [] : [example],
  });
}

/** A value with getters or traps that throw is no JSON; nothing more can be said about it. */
function orNull<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}

function unreadable(): Envelope {
  const issue = "The call's arguments cannot be read; they must be JSON.";
  return createEnvelope({
    code: "INPUT_VALIDATION_FAILED",
    tool: TOOL,
    summary: `The call was not run. ${issue}`,
    details: [{ path: "", issue, received_type: "object" }],
  });
}

/** Some models send null for what they leave out; and of far too many inputs the first ones are enough. */
function toCheck(input: unknown, { inputs }: ReadableCall): unknown {
  if (typeof input !== "object" || input === null || !("inputs" in input)) return input;
  if (input.inputs === null) return { ...input, inputs: undefined };
  return inputs.size > callLimits.aliases ? { ...input, inputs: Object.fromEntries(firstOf(inputs)) } : input;
}

function tooManyInputs({ inputs }: ReadableCall): Problem[] {
  if (inputs.size <= callLimits.aliases) return [];
  return [{ code: "SCHEMA_MAX_ITEMS", path: "inputs", issue: `inputs has more than ${callLimits.aliases} names.`, receivedType: "object" }];
}

function firstOf(inputs: ReadonlyMap<string, unknown>): ReadonlyMap<string, unknown> {
  return inputs.size <= callLimits.aliases ? inputs : new Map([...inputs].slice(0, callLimits.aliases));
}

/** Only what was checked, in the order and number that counts. */
function toCall({ code, inputs, operation, reason, inputAliases, expectedArtifacts }: ReadableCall): CodeInterpreterCall {
  const contract = { operation, reason, inputAliases: [...new Set(inputAliases)], expectedArtifacts: [...new Set(expectedArtifacts)] };
  return {
    code: code ?? "",
    ...(inputs.size > 0 ? { inputs: Object.fromEntries(inputs) as Record<string, string> } : {}),
    postProcessingContract: contract as CodeInterpreterCall["postProcessingContract"],
  };
}
