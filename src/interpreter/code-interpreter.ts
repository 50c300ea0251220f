import { createToolError, type ToolError } from "../errors/tool-error.ts";
import { SluiceError, toModelCode } from "../errors/sluice-error.ts";
import type { ArtifactStore } from "../artifacts/artifact-store.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { CellArtifact, CellOutcome } from "../protocol/outcome.ts";
import type { ProbeSink } from "../protocol/probe.ts";
import { orAbort } from "../concurrency/or-abort.ts";
import type { CodeInterpreterCall } from "./call-contract/code-interpreter-call.ts";
import { validateCodeInterpreterContract, type ContractVerdict } from "./call-contract/validate-code-interpreter-contract.ts";
import { probeUnrunCall, runPythonInSandbox, type UnrunCall } from "./run-python-in-sandbox.ts";
import type { CellSession, QueuePlace } from "../cells/open-cell-session.ts";
import { inSpan } from "./in-span.ts";
import { toCellInput } from "../cells/cell-inputs.ts";
import { toToolResult, type CallFacts, type ToolResult } from "./tool-result.ts";
import { getOrCreateTurnSandbox, type InterpreterTurn } from "./turn.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Live output of this call's cell, instead of the turn's own listener. */
  readonly onOutput?: InterpreterTurn["onOutput"] | undefined;
  /** The contract holds, and the cell is about to run: the whole call, with its edits made. */
  readonly onCell?: ((call: CodeInterpreterCall) => void) | undefined;
  /** Whether a next cell finds the same sandbox, which the text for the model says. Default: true. */
  readonly keepsSandbox?: boolean | undefined;
}

const TOOL = "code_interpreter";

/** The tool itself: check the contract, run the cell in the turn's sandbox, publish what it gave out. Rejects only on abort. */
export async function runCodeInterpreter(turn: InterpreterTurn, input: unknown, options: CallOptions = {}): Promise<ToolResult> {
  return await answerInTurn(turn, { tool: TOOL, signal: options.signal }, async (held) => {
    const contract = await orAbort(checkCall(turn, input), options.signal);
    if (!contract.ok) return toToolResult({ tool: TOOL, error: contract.toolError }, turn);
    return await runCheckedCall(turn, contract.call, { ...options, ...held, tool: TOOL });
  });
}

/**
 * Queueing, tracing and probes of every interpreter tool: one call of the turn at a time, in a span, never without a probe. A failure outside of the cell
 * becomes a tool error. Rejects only on abort.
 */
export async function answerInTurn(
  turn: InterpreterTurn,
  { tool, signal }: { tool: string; signal?: AbortSignal | undefined },
  work: (held: HeldTurn) => Promise<ToolResult>,
): Promise<ToolResult> {
  const place = { queuedAt: performance.now() };
  let stage: UnrunCall["stage"] = "queue";
  let isProbed = false;
  const onProbe: ProbeSink = (line) => {
    isProbed = true;
    try {
      turn.onProbe(line);
    } catch {} // a sink that fails changes no answer
  };
  const probe = (status: string, error: string): void => {
    if (!isProbed) probeUnrunCall(onProbe, { turnId: turn.id, stage, status, error });
  };
  const answer = async (): Promise<ToolResult> => {
    stage = "contract";
    try {
      return await work({ place, onProbe });
    } catch (error) {
      signal?.throwIfAborted();
      return toToolResult({ tool, error: toFailureToolError(error, tool) }, turn);
    }
  };
  return await inSpan(`sluice.${tool}`, { "sluice.turn": turn.id }, async (span) => {
    const result = await turn.queue.run(answer, signal).catch((reason: unknown) => {
      probe("aborted", reason instanceof Error ? reason.message : String(reason));
      throw reason;
    });
    const { outcome, error, artifacts } = result;
    span.set({ "sluice.status": outcome?.status ?? "refused", "sluice.artifacts": artifacts.length });
    if (outcome !== null)
      span.set({ "sluice.sandbox": outcome.sandbox.id, "sluice.start": outcome.sandbox.start, "sluice.run_ms": outcome.timing.runMs });
    if (error !== null) {
      span.fail(error.error_code);
      probe(error.error_code, error.summary);
    }
    return result;
  });
}

/** Holds a call against the evidence and the snapshot at hand. */
export async function checkCall({ evidence, source }: InterpreterTurn, input: unknown): Promise<ContractVerdict> {
  return await validateCodeInterpreterContract(input, {
    aliases: evidence.aliases(),
    maxCodeBytes: source.limits.codeBytes,
    helpers: await source.helpers(),
    parser: source.parser,
  });
}

/** What a call has while it runs, alone in its turn. */
interface HeldTurn {
  readonly place: QueuePlace;
  readonly onProbe: ProbeSink;
}

export interface CheckedCallOptions extends CallOptions, HeldTurn {
  readonly tool: string;
}

/** Runs a call whose contract holds in the turn's sandbox. */
export async function runCheckedCall(
  turn: InterpreterTurn,
  call: CodeInterpreterCall,
  { tool, place, onProbe, signal, onOutput = turn.onOutput, onCell, keepsSandbox }: CheckedCallOptions,
): Promise<ToolResult> {
  const { evidence } = turn;
  const { inputAliases, expectedArtifacts } = call.postProcessingContract;
  onCell?.(call);
  const ran = await runPythonInSandbox({
    session: await sessionOf(turn, onProbe, signal),
    turnId: turn.id,
    code: call.code,
    inputs: new Map(evidence.aliases().map((alias) => [alias, toCellInput(evidence.get(alias)!)])),
    // What the contract names is there even where the code's text does not show it.
    names: { ...Object.fromEntries(inputAliases.map((alias) => [alias, alias])), ...call.inputs },
    expect: expectedArtifacts,
    onProbe,
    place,
    ...(onOutput && { onOutput }),
    ...(signal && { signal }),
  });
  const isMissing = tool === TOOL && turn.last?.isUndone === true; // an edit runs that cell again, whole
  const outcome = isMissing ? { ...ran, diagnostics: { ...ran.diagnostics, cellUndone: true } } : ran;
  turn.last = { call, counted: outcome.status === "ok" };
  const published = turn.publishes && outcome.status === "ok" ? await publish(turn, outcome, { tool, call }) : {};
  return toToolResult({ tool, outcome, ...published }, { evidence, keepsSandbox });
}

async function sessionOf(turn: InterpreterTurn, onProbe: ProbeSink, signal?: AbortSignal): Promise<CellSession> {
  try {
    return await orAbort(getOrCreateTurnSandbox(turn, signal).session, signal);
  } catch (error) {
    const status = signal?.aborted === true ? "aborted" : toModelCode(error);
    probeUnrunCall(onProbe, { turnId: turn.id, stage: "start", status, error: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}

/** The result and the artifacts of a cell that counted; when one cannot be kept, the other still is. */
async function publish(
  turn: InterpreterTurn,
  { resultJson: json, artifacts }: CellOutcome,
  { tool, call }: { tool: string; call: CodeInterpreterCall },
): Promise<Pick<CallFacts, "error" | "artifacts" | "resultAlias">> {
  const kept = async (): Promise<string | null> =>
    json === null ? null : (await turn.evidence.keepResult({ json, from: tool, arguments: call.postProcessingContract })).alias;
  const [result, published] = await Promise.allSettled([kept(), publishArtifacts(artifacts, turn.artifacts)]);
  const failed = [result, published].find((one) => one.status === "rejected");
  return {
    error: failed && toFailureToolError(failed.reason, tool),
    artifacts: published.status === "fulfilled" ? published.value : [],
    resultAlias: result.status === "fulfilled" ? result.value : null,
  };
}

/** Keeps the artifacts of a cell that counted. They were checked when they came; here they get their address. */
async function publishArtifacts(artifacts: readonly CellArtifact[], store: ArtifactStore): Promise<ArtifactEnvelope[]> {
  return await Promise.all(
    artifacts.map(async (artifact): Promise<ArtifactEnvelope> => {
      const title = artifact.title === undefined ? {} : { title: artifact.title };
      if (artifact.kind === "chart") {
        const { url, contentHash } = await store.put({ bytes: artifact.bytes, type: "json" });
        return { schemaVersion: 1, kind: "chart", url, spec: artifact.spec, data: artifact.data, ...title, contentHash };
      }
      const { url, contentHash, bytes } = await store.put({ bytes: artifact.bytes, type: "png" });
      const { alt, width, height, figure } = artifact;
      return { schemaVersion: 1, kind: "image", url, alt, ...title, contentHash, bytes, width, height, ...(figure && { figure }) };
    }),
  );
}

/** What went wrong outside of the cell. */
export function toFailureToolError(error: unknown, tool: string, more: readonly string[] = []): ToolError {
  const summary = error instanceof Error ? error.message : String(error);
  const hints = [...(error instanceof SluiceError && error.hint ? [error.hint] : []), ...more];
  return createToolError({ code: toModelCode(error), tool, summary: summary || "The runtime failed and did not say how.", hints });
}
