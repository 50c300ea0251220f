import { createEnvelope, type Envelope } from "../errors/envelope.ts";
import { NoSandboxError, SluiceError } from "../errors/sluice-error.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { CellOutcome } from "../protocol/outcome.ts";
import type { CodeInterpreterCall } from "./contract/code-interpreter-call.ts";
import { validateCodeInterpreterContract } from "./contract/validate-code-interpreter-contract.ts";
import { publishArtifacts } from "./publish-artifacts.ts";
import { runPythonInSandbox } from "./run-python-in-sandbox.ts";
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
}

/** The tool itself: check the contract, run the cell in the turn's sandbox, publish what it gave out. Rejects only on abort. */
export async function runCodeInterpreter(
  turn: InterpreterTurn,
  input: unknown,
  { signal }: CallOptions = {},
): Promise<CodeInterpreterAnswer> {
  const { evidence, source } = turn;
  const verdict = await validateCodeInterpreterContract(input, {
    aliases: evidence.aliases(),
    packages: await source.packages(),
    helpers: await source.helpers(),
    parser: source.parser,
  });
  signal?.throwIfAborted();
  if (!verdict.ok) return refused(verdict.envelope);
  return await runCheckedCall(turn, verdict.call, { tool: "code_interpreter", signal });
}

export interface CheckedCallOptions extends CallOptions {
  readonly tool: string;
}

/** A call whose contract holds, in the turn's sandbox. */
export async function runCheckedCall(
  turn: InterpreterTurn,
  call: CodeInterpreterCall,
  { tool, signal }: CheckedCallOptions,
): Promise<CodeInterpreterAnswer> {
  return await inSpan(
    "sluice.code_interpreter",
    { "sluice.turn": turn.id, "sluice.operation": call.postProcessingContract.operation },
    async (span) => {
      const answer = await run(turn, call, { tool, signal });
      span.set({
        "sluice.status": answer.outcome?.status ?? "refused",
        "sluice.start": answer.outcome?.sandbox.start ?? "none",
        "sluice.artifacts": answer.artifacts.length,
      });
      return answer;
    },
  );
}

async function run(turn: InterpreterTurn, call: CodeInterpreterCall, { tool, signal }: CheckedCallOptions): Promise<CodeInterpreterAnswer> {
  let outcome: CellOutcome;
  try {
    outcome = await runCellOf(turn, call, signal);
  } catch (error) {
    signal?.throwIfAborted();
    return refused(toEnvelope(error, tool));
  }
  turn.last = { call, counted: outcome.status === "ok" };
  const envelope = toCellEnvelope(outcome, { tool });
  if (envelope !== null) return { outcome, envelope, artifacts: [], resultAlias: null, repair: toRepair(outcome) };
  try {
    const artifacts = await publishArtifacts(outcome.artifacts, turn.artifacts);
    const { resultJson } = outcome;
    const item =
      resultJson === null ? null : turn.evidence.addResult({ json: resultJson, from: tool, arguments: call.postProcessingContract });
    return { outcome, envelope: null, artifacts, resultAlias: item?.alias ?? null, repair: toRepair(outcome) };
  } catch (error) {
    return { outcome, envelope: toEnvelope(error, tool), artifacts: [], resultAlias: null, repair: null };
  }
}

async function runCellOf(turn: InterpreterTurn, call: CodeInterpreterCall, signal: AbortSignal | undefined): Promise<CellOutcome> {
  const sandbox = getOrCreateTurnSandbox(turn, signal);
  const session = await sandbox.session;
  const names = call.inputs ?? {};
  const used = usedAliases(turn, call);
  for (const alias of used) {
    if (sandbox.bound.has(alias)) continue;
    const item = turn.evidence.get(alias)!;
    session.bind(alias, { format: item.format, bytes: item.read() });
    sandbox.bound.add(alias);
  }
  return await runPythonInSandbox({
    session,
    turnId: turn.id,
    code: call.code,
    names,
    expect: call.postProcessingContract.expectedArtifacts,
    inputAliasCount: used.length,
    inputsBytes: used.reduce((sum, alias) => sum + turn.evidence.get(alias)!.bytes, 0),
    onProbe: turn.onProbe,
    ...(turn.onOutput && { onOutput: turn.onOutput }),
    ...(signal && { signal }),
  });
}

/** Every alias that the code can see: those the contract names, those in its text, and all of them when it goes through `inputs`. */
function usedAliases(turn: InterpreterTurn, { code, inputs = {}, postProcessingContract }: CodeInterpreterCall): string[] {
  const named = new Set([...postProcessingContract.inputAliases, ...Object.values(inputs)]);
  const all = /\binputs\b/.test(code);
  return turn.evidence.aliases().filter((alias) => all || named.has(alias) || code.includes(alias));
}

function refused(envelope: Envelope): CodeInterpreterAnswer {
  return { outcome: null, envelope, artifacts: [], resultAlias: null, repair: null };
}

const usageCodes: Readonly<Record<string, "INPUT_TOO_LARGE" | "CODE_TOO_LONG">> = {
  INPUTS_TOO_LARGE: "INPUT_TOO_LARGE",
  INPUT_TOO_LARGE: "INPUT_TOO_LARGE",
  INPUT_NOT_TAKEN: "INPUT_TOO_LARGE",
  CODE_TOO_LONG: "CODE_TOO_LONG",
};

function toEnvelope(error: unknown, tool: string): Envelope {
  if (!(error instanceof SluiceError)) {
    return createEnvelope({ code: "INTERNAL_ERROR", tool, summary: error instanceof Error ? error.message : String(error) });
  }
  const code =
    error.code === "SANDBOX_QUEUE_TIMEOUT"
      ? "QUEUE_FULL"
      : error instanceof NoSandboxError
        ? "SANDBOX_UNAVAILABLE"
        : error.code === "STORAGE_UNAVAILABLE"
          ? "STORAGE_UNAVAILABLE"
          : (usageCodes[error.code] ?? "INTERNAL_ERROR");
  return createEnvelope({ code, tool, summary: error.message, hints: error.hint ? [error.hint] : [] });
}
