import { createEnvelope, type Envelope } from "../errors/envelope.ts";
import type { EnvelopeCode } from "../errors/envelope-table.ts";
import { NoSandboxError, SandboxLostError, SluiceError } from "../errors/sluice-error.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { CellOutcome } from "../protocol/outcome.ts";
import { orAbort } from "../waiting/or-abort.ts";
import { bindInputs } from "./bind-inputs.ts";
import type { CodeInterpreterCall } from "./contract/code-interpreter-call.ts";
import { validateCodeInterpreterContract, type ContractVerdict } from "./contract/validate-code-interpreter-contract.ts";
import { publishArtifacts } from "./publish-artifacts.ts";
import { probeUnrunCall, runPythonInSandbox, type UnrunCall } from "./run-python-in-sandbox.ts";
import { toCellEnvelope } from "./to-cell-envelope.ts";
import { toRepair, type Repair } from "./to-repair.ts";
import { inSpan } from "./in-span.ts";
import type { InterpreterTurn } from "./turn.ts";
import { getOrCreateTurnSandbox } from "./turn-sandbox.ts";

/** What one call yielded. `envelope` says why it failed; `outcome` is null when nothing was run. */
export interface CodeInterpreterAnswer {
  readonly outcome: CellOutcome | null;
  readonly envelope: Envelope | null;
  readonly artifacts: readonly ArtifactEnvelope[];
  /** The result kept whole, for a later cell or chart. */
  readonly resultAlias: string | null;
  /** What a loop can force next. */
  readonly repair: Repair | null;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Live output of this call's cell, instead of the turn's own listener. */
  readonly onOutput?: InterpreterTurn["onOutput"] | undefined;
  /** The contract holds, and the cell is about to run: the whole call, with its edits made. */
  readonly onCell?: ((call: CodeInterpreterCall) => void) | undefined;
}

const TOOL = "code_interpreter";

/** The tool itself: check the contract, run the cell in the turn's sandbox, publish what it gave out. Rejects only on abort. */
export async function runCodeInterpreter(
  turn: InterpreterTurn,
  input: unknown,
  { signal, ...hear }: CallOptions = {},
): Promise<CodeInterpreterAnswer> {
  const askedAt = performance.now();
  return await answerInTurn(turn, { tool: TOOL, signal }, async (trace) => {
    const verdict = await orAbort(checkCall(turn, input), signal);
    return verdict.ok
      ? await runCheckedCall(turn, verdict.call, { tool: TOOL, askedAt, trace, signal, ...hear })
      : refused(verdict.envelope);
  });
}

interface ToolCallOptions extends CallOptions {
  readonly tool: string;
}

/** How far a call came, and whether it has left a probe. */
export interface CallTrace {
  stage: UnrunCall["stage"];
  isProbed: boolean;
}

/** One call of the turn at a time, in a span of its own, never without a probe. What goes wrong outside of the cell is an envelope too. */
export async function answerInTurn(
  turn: InterpreterTurn,
  { tool, signal }: ToolCallOptions,
  work: (trace: CallTrace) => Promise<CodeInterpreterAnswer>,
): Promise<CodeInterpreterAnswer> {
  const trace: CallTrace = { stage: "queue", isProbed: false };
  const probe = (status: string, error: string): void => {
    if (trace.isProbed) return;
    try {
      probeUnrunCall(turn.onProbe, { turnId: turn.id, stage: trace.stage, status, error });
    } catch {} // a sink that fails changes no answer
  };
  const answer = async (): Promise<CodeInterpreterAnswer> => {
    trace.stage = "contract";
    try {
      return await work(trace);
    } catch (error) {
      signal?.throwIfAborted();
      return refused(toFailureEnvelope(error, tool));
    }
  };
  return await inSpan(`sluice.${tool}`, { "sluice.turn": turn.id }, async (span) => {
    const given = await turn.queue.run(answer, signal).catch((reason: unknown) => {
      probe("aborted", reason instanceof Error ? reason.message : String(reason));
      throw reason;
    });
    const { outcome, envelope, artifacts } = given;
    span.set({ "sluice.status": outcome?.status ?? "refused", "sluice.artifacts": artifacts.length });
    if (outcome !== null)
      span.set({ "sluice.sandbox": outcome.sandbox.id, "sluice.start": outcome.sandbox.start, "sluice.run_ms": outcome.timing.runMs });
    if (envelope !== null) {
      span.fail(envelope.error_code);
      probe(envelope.error_code, envelope.summary);
    }
    return given;
  });
}

/** Holds a call against the evidence and the snapshot at hand. */
export async function checkCall({ evidence, source }: InterpreterTurn, input: unknown): Promise<ContractVerdict> {
  return await validateCodeInterpreterContract(input, {
    aliases: evidence.aliases(),
    packages: await source.packages(),
    helpers: await source.helpers(),
    parser: source.parser,
  });
}

export interface CheckedCallOptions extends ToolCallOptions {
  readonly askedAt: number;
  readonly trace: CallTrace;
}

/** A call whose contract holds, in the turn's sandbox. */
export async function runCheckedCall(
  turn: InterpreterTurn,
  call: CodeInterpreterCall,
  { tool, askedAt, trace, signal, onOutput, onCell }: CheckedCallOptions,
): Promise<CodeInterpreterAnswer> {
  trace.stage = "start";
  onCell?.(call);
  const ran = await runCellOf(turn, call, { askedAt, trace, signal, onOutput });
  const isMissing = tool === TOOL && turn.last?.isUndone === true; // an edit runs that cell again, whole
  const outcome = isMissing ? { ...ran, diagnostics: { ...ran.diagnostics, cellUndone: true } } : ran;
  turn.last = { call, counted: outcome.status === "ok" };
  const answer = { outcome, envelope: toCellEnvelope(outcome, { tool }), artifacts: [], resultAlias: null, repair: toRepair(outcome) };
  return answer.envelope === null ? await publish(turn, { ...answer, outcome }, { tool, call }) : answer;
}

/** The result and the artifacts of a cell that counted; when one cannot be kept, the other still is. */
async function publish(
  turn: InterpreterTurn,
  answer: CodeInterpreterAnswer & { outcome: CellOutcome },
  { tool, call }: { tool: string; call: CodeInterpreterCall },
): Promise<CodeInterpreterAnswer> {
  const { resultJson: json, artifacts } = answer.outcome;
  const kept = async (): Promise<string | null> =>
    json === null ? null : (await turn.evidence.keepResult({ json, from: tool, arguments: call.postProcessingContract })).alias;
  const [result, published] = await Promise.allSettled([kept(), publishArtifacts(artifacts, turn.artifacts)]);
  const failed = [result, published].find((one) => one.status === "rejected");
  return {
    ...answer,
    envelope: failed === undefined ? null : toFailureEnvelope(failed.reason, tool),
    artifacts: published.status === "fulfilled" ? published.value : [],
    resultAlias: result.status === "fulfilled" ? result.value : null,
  };
}

async function runCellOf(
  turn: InterpreterTurn,
  call: CodeInterpreterCall,
  { askedAt, trace, signal, onOutput = turn.onOutput }: Pick<CheckedCallOptions, "askedAt" | "trace" | "signal" | "onOutput">,
): Promise<CellOutcome> {
  const sandbox = getOrCreateTurnSandbox(turn, signal);
  const session = await orAbort(sandbox.session, signal);
  const used = usedAliases(turn, call);
  const { inputsChanged, ...before } = await bindInputs({ session, evidence: turn.evidence, aliases: used, bound: sandbox.bound, signal });
  const outcome = await runPythonInSandbox({
    session,
    turnId: turn.id,
    code: call.code,
    names: toNames(call),
    expect: call.postProcessingContract.expectedArtifacts,
    inputAliasCount: used.length,
    inputsBytes: used.reduce((sum, alias) => sum + turn.evidence.get(alias)!.bytes, 0),
    onProbe: (line) => {
      trace.isProbed = true;
      turn.onProbe(line);
    },
    askedAt,
    ...(onOutput && { onOutput }),
    ...(signal && { signal }),
  });
  const noticed = { ...before, ...outcome.diagnostics, ...(inputsChanged.length === 0 ? {} : { inputsChanged }) };
  return { ...outcome, diagnostics: noticed };
}

/** What the contract names is there even where the code's text does not show it. */
function toNames({ inputs, postProcessingContract }: CodeInterpreterCall): Record<string, string> {
  return { ...Object.fromEntries(postProcessingContract.inputAliases.map((alias) => [alias, alias])), ...inputs };
}

/**
 * Every alias that the code can see: those the contract names, those in its text, and all of them when it goes through `inputs`. Files may be many and
 * large, and short words: of them only those that are named, by the contract or as a word of the code.
 */
function usedAliases(turn: InterpreterTurn, { code, inputs = {}, postProcessingContract }: CodeInterpreterCall): string[] {
  const named = new Set([...postProcessingContract.inputAliases, ...Object.values(inputs)]);
  const all = /\binputs\b/.test(code);
  const words = new Set(code.match(/\w+/g));
  return turn.evidence.aliases().filter((alias) => {
    if (named.has(alias)) return true;
    return turn.evidence.get(alias)?.file === undefined ? all || code.includes(alias) : words.has(alias);
  });
}

/** Nothing was run. */
export function refused(envelope: Envelope): CodeInterpreterAnswer {
  return { outcome: null, envelope, artifacts: [], resultAlias: null, repair: null };
}

const codesOfErrors: Readonly<Record<string, EnvelopeCode>> = {
  INPUTS_TOO_LARGE: "INPUT_TOO_LARGE",
  INPUT_TOO_LARGE: "INPUT_TOO_LARGE",
  INPUT_NOT_TAKEN: "INPUT_TOO_LARGE",
  CODE_TOO_LONG: "CODE_TOO_LONG",
  DATA_FILE_GONE: "DATA_FILE_GONE",
  DATA_FILE_REFUSED: "DATA_FILE_REFUSED",
  EVIDENCE_FULL: "EVIDENCE_FULL",
  SANDBOX_QUEUE_TIMEOUT: "QUEUE_FULL",
  STORAGE_UNAVAILABLE: "STORAGE_UNAVAILABLE",
};

/** What went wrong outside of the cell. */
export function toFailureEnvelope(error: unknown, tool: string, more: readonly string[] = []): Envelope {
  const summary = error instanceof Error ? error.message : String(error);
  const hints = [...(error instanceof SluiceError && error.hint ? [error.hint] : []), ...more];
  return createEnvelope({ code: toCode(error), tool, summary: summary || "The runtime failed and did not say how.", hints });
}

function toCode(error: unknown): EnvelopeCode {
  const known = error instanceof SluiceError ? codesOfErrors[error.code] : undefined;
  if (known !== undefined) return known;
  if (error instanceof NoSandboxError) return "SANDBOX_UNAVAILABLE";
  return error instanceof SandboxLostError ? "SANDBOX_LOST" : "INTERNAL_ERROR";
}
