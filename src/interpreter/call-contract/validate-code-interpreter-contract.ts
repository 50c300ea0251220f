import { join } from "node:path";
import type { ToolError } from "../../errors/tool-error.ts";
import { refuseArguments, refuseUnreadableArguments } from "../../errors/parse-arguments.ts";
import { describeZodIssues, type Problem } from "../../errors/schema-problems.ts";
import { aliasProblems, codeProblems, localNameProblems, type ReadableCall, readCall } from "./call-problems.ts";
import { callLimits, type CodeInterpreterCall, codeInterpreterCallSchema } from "./code-interpreter-call.ts";
import { correctedExample } from "./corrected-example.ts";
import { SluiceError, UsageError } from "../../errors/sluice-error.ts";
import { createWorkerThread, type ThreadFailure } from "../../concurrency/worker-thread.ts";

export interface ContractContext {
  /** Of the conversation's tool outputs and results, oldest first. */
  readonly aliases: Iterable<string>;
  /** The sandbox's limit for the code of one cell. */
  readonly maxCodeBytes: number;
  /** Names that are globals of every cell. */
  readonly helpers: readonly string[];
  /** One for the whole process: it stays warm. */
  readonly parser: PythonParser;
}

export type ContractVerdict =
  | { readonly ok: true; readonly call: CodeInterpreterCall }
  | { readonly ok: false; readonly toolError: ToolError };

/**
 * Decides whether a call may be run, before any sandbox is touched. Everything that is wrong is reported at once, with one call that would be
 * accepted. Whatever the input is, the answer is a verdict; only a parser that cannot be started is an exception.
 */
export async function validateCodeInterpreterContract(input: unknown, context: ContractContext): Promise<ContractVerdict> {
  const call = orNull(() => readCall(input));
  if (call === null) return { ok: false, toolError: refuseUnreadableArguments(notRun) };
  const { helpers, parser } = context;
  // Begun first: the parser's thread works while the rest is looked at here.
  const checkingCode = call.code === null ? [] : codeProblems(call.code, { parser, maxCodeBytes: context.maxCodeBytes });
  const ofSchema = orNull(() => schemaProblems(toCheck(input, call)));
  const known = new Set(context.aliases);
  const bounded = { ...call, inputs: firstOf(call.inputs), inputAliases: call.inputAliases?.slice(0, callLimits.aliases) ?? null };
  const ofNames = [...tooManyInputs(call), ...aliasProblems({ ...bounded, known }), ...localNameProblems({ ...bounded, known, helpers })];
  const ofCode = await checkingCode;
  if (ofSchema === null) return { ok: false, toolError: refuseUnreadableArguments(notRun) };
  const problems = [...ofSchema, ...ofNames, ...ofCode];
  if (problems.length === 0) return { ok: true, call: toCall(call) };
  const example = correctedExample(bounded, { known, helpers, codeIsFine: ofCode.length === 0 && call.code !== null });
  return { ok: false, toolError: refuseArguments({ ...notRun, problems, examples: example === null ? [] : [example] }) };
}

const notRun = { tool: "code_interpreter", lead: "The call was not run" } as const;

function schemaProblems(value: unknown): Problem[] {
  const { error } = codeInterpreterCallSchema.safeParse(value);
  return error === undefined ? [] : describeZodIssues({ schema: codeInterpreterCallSchema, value, issues: error.issues });
}

/** A value with getters or traps that throw is no JSON; nothing more can be said about it. */
function orNull<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
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

export interface PythonSyntaxError {
  /** Counted from 1, in characters. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** `crashed`: nested so deeply that the parser's stack was not enough; CPython's would not be either. */
export type ParsedPython =
  | { readonly status: "parsed"; readonly errors: readonly PythonSyntaxError[]; readonly errorCount: number }
  | { readonly status: "timeout" }
  | { readonly status: "crashed" };

/** Parses Python 3.13 in a thread of its own, which starts at the first use (about half a second), stays warm, and is replaced when a text is too much for it. */
export interface PythonParser extends AsyncDisposable {
  /** Texts are parsed one at a time; the limit counts from when a text's turn comes. */
  parse(code: string): Promise<ParsedPython>;
  /** Idempotent. An idle parser does not keep the process alive, so closing is for tests and orderly ends. */
  close(): Promise<void>;
}

export function createPythonParser({ timeoutMs = 5_000 }: { timeoutMs?: number } = {}): PythonParser {
  const thread = createWorkerThread<string, ParsedPython>({
    program: join(import.meta.dirname, "parse-python-process"),
    resourceLimits: () => ({ maxOldGenerationSizeMb: 512, stackSizeMb: 4 }),
    timeoutMs,
  });

  async function parse(code: string): Promise<ParsedPython> {
    try {
      return await thread.ask(code);
    } catch (error) {
      const { reason, cause } = error as ThreadFailure;
      if (reason === "timeout") return { status: "timeout" };
      if (reason === "ended") return { status: "crashed" };
      if (reason === "closed") throw new UsageError({ code: "PARSER_CLOSED", message: "The Python parser is closed." });
      throw unavailable(cause);
    }
  }

  return { parse, close: () => thread.close(), [Symbol.asyncDispose]: () => thread.close() };
}

function unavailable(cause: unknown): SluiceError {
  return new SluiceError({
    code: "PYTHON_PARSER_UNAVAILABLE",
    message: "The parser that checks Python code before it is run did not start.",
    hint: "Run `npm install`: the package @astral-sh/ruff-wasm-nodejs may be missing.",
    cause,
  });
}
