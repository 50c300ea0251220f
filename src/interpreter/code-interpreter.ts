import { toStoredBytes, type ArtifactStore } from "../artifacts/artifact-store.ts";
import { toCellInput } from "../cells/cell-inputs.ts";
import type { CellSession, QueuePlace } from "../cells/open-cell-session.ts";
import { createBreather } from "../concurrency/create-breather.ts";
import { orAbort } from "../concurrency/or-abort.ts";
import { SluiceError, toModelCode } from "../errors/sluice-error.ts";
import { createToolError, type ToolError } from "../errors/tool-error.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import { readCoverage, type Coverage } from "../protocol/coverage-event.ts";
import type { CellArtifact, CellOutcome } from "../protocol/outcome.ts";
import type { ProbeSink } from "../protocol/probe.ts";
import type { CodeInterpreterCall } from "./call-contract/code-interpreter-call.ts";
import { validateCodeInterpreterContract, type ContractVerdict } from "./call-contract/validate-code-interpreter-contract.ts";
import { inSpan } from "./in-span.ts";
import { getOrCreateTurnSandbox, type InterpreterTurn } from "./interpreter-turn.ts";
import { probeUnrunCall, runPythonInSandbox, type UnrunCall } from "./run-python-in-sandbox.ts";
import { toToolResult, type ToolResult, type ToolResultParts } from "./tool-result.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Receives the output of this call's cell while it runs, instead of the turn's listener. */
  readonly onOutput?: InterpreterTurn["onOutput"] | undefined;
  /** Called with the valid call, edits applied, when its cell is about to run. */
  readonly onCell?: ((call: CodeInterpreterCall) => void) | undefined;
  /** Whether the next cell runs in the same sandbox; the text for the model depends on it. Default: true. */
  readonly keepsSandbox?: boolean | undefined;
}

const TOOL = "code_interpreter";

/** Runs one `code_interpreter` call: checks the contract, runs the cell in the turn's sandbox, publishes its artifacts. Rejects only on abort. */
export async function runCodeInterpreter(turn: InterpreterTurn, input: unknown, options: CallOptions = {}): Promise<ToolResult> {
  return await runInTurn(turn, { tool: TOOL, signal: options.signal }, async (running) => {
    const contract = await orAbort(validateCall(turn, input), options.signal);
    if (!contract.ok) return toToolResult({ tool: TOOL, error: contract.toolError }, turn);
    return await runValidCall(turn, contract.call, { ...options, ...running, tool: TOOL });
  });
}

/** What a call has while it runs alone in its turn. */
interface RunningCall {
  readonly place: QueuePlace;
  readonly onProbe: ProbeSink;
}

/**
 * Queues, traces and probes a call of any interpreter tool: one call of the turn at a time, in a span, with at least one probe. A failure outside the
 * cell becomes a tool error. Rejects only on abort.
 */
export async function runInTurn(
  turn: InterpreterTurn,
  { tool, signal }: { tool: string; signal?: AbortSignal | undefined },
  run: (running: RunningCall) => Promise<ToolResult>,
): Promise<ToolResult> {
  const place = { queuedAt: performance.now() };
  let stage: UnrunCall["stage"] = "queue";
  let isProbed = false;
  const onProbe: ProbeSink = (line) => {
    isProbed = true;
    try {
      turn.onProbe(line);
    } catch {} // a failing sink must not change the result
  };
  const probeUnlessProbed = (status: string, error: string): void => {
    if (!isProbed) probeUnrunCall(onProbe, { turnId: turn.id, stage, status, error });
  };
  const runWithoutThrowing = async (): Promise<ToolResult> => {
    stage = "contract";
    try {
      return await run({ place, onProbe });
    } catch (error) {
      signal?.throwIfAborted();
      return toToolResult({ tool, error: toFailureToolError(error, tool) }, turn);
    }
  };
  return await inSpan(`sluice.${tool}`, { "sluice.turn": turn.id }, async (span) => {
    const result = await turn.queue.run(runWithoutThrowing, signal).catch((reason: unknown) => {
      probeUnlessProbed("aborted", reason instanceof Error ? reason.message : String(reason));
      throw reason;
    });
    const { outcome, error, artifacts } = result;
    span.set({ "sluice.status": outcome?.status ?? "refused", "sluice.artifacts": artifacts.length });
    if (outcome !== null)
      span.set({ "sluice.sandbox": outcome.sandbox.id, "sluice.start": outcome.sandbox.start, "sluice.run_ms": outcome.timing.runMs });
    if (error !== null) {
      span.fail(error.error_code);
      probeUnlessProbed(error.error_code, error.summary);
    }
    return result;
  });
}

/** Checks a call against the turn's evidence and the runtime's limits. */
export async function validateCall({ evidence, source }: InterpreterTurn, input: unknown): Promise<ContractVerdict> {
  return await validateCodeInterpreterContract(input, {
    aliases: evidence.aliases(),
    maxCodeBytes: source.limits.codeBytes,
    helpers: await source.helpers(),
    parser: source.parser,
  });
}

/** Runs a valid call in the turn's sandbox. */
export async function runValidCall(
  turn: InterpreterTurn,
  call: CodeInterpreterCall,
  { tool, place, onProbe, signal, onOutput = turn.onOutput, onCell, keepsSandbox }: CallOptions & RunningCall & { readonly tool: string },
): Promise<ToolResult> {
  const { evidence } = turn;
  const { inputAliases, expectedArtifacts } = call.postProcessingContract;
  onCell?.(call);
  const ran = await runPythonInSandbox({
    cellSession: await openTurnSandbox(turn, onProbe, signal),
    turnId: turn.id,
    code: call.code,
    inputs: new Map(evidence.aliases().map((alias) => [alias, toCellInput(evidence.get(alias)!)])),
    // Naming the contract's aliases makes them visible even if they do not appear in the code's text.
    names: { ...Object.fromEntries(inputAliases.map((alias) => [alias, alias])), ...call.inputs },
    expect: expectedArtifacts,
    ...(turn.publishes && { turnArtifacts: turn.artifactBytes }),
    onProbe,
    place,
    ...(onOutput && { onOutput }),
    ...(signal && { signal }),
  });
  // Not for an edit: it runs the undone cell again.
  const cellUndone = tool === TOOL && turn.last?.isUndone === true;
  const outcome = cellUndone ? { ...ran, diagnostics: { ...ran.diagnostics, cellUndone } } : ran;
  turn.last = { call, isCommitted: outcome.status === "ok" };
  const published = turn.publishes && outcome.status === "ok" ? await publish(turn, outcome, { tool, call }) : {};
  if (outcome.status === "ok") keepCoverage(turn, readCoverage(outcome.diagnostics));
  return toToolResult({ tool, outcome, ...published }, { evidence, coverage: turn.coverage, keepsSandbox });
}

/** Of more cells, the last ones: a connection of an MCP client can run any number of cells. */
const MAX_COVERAGE_CELLS = 20;

function keepCoverage(turn: InterpreterTurn, coverage: Coverage): void {
  if (coverage.series.length > 0) turn.coverage = [...turn.coverage, coverage].slice(-MAX_COVERAGE_CELLS);
}

/** Returns the turn's cell session. If it cannot be opened, emits a probe and throws. */
async function openTurnSandbox(turn: InterpreterTurn, onProbe: ProbeSink, signal?: AbortSignal): Promise<CellSession> {
  try {
    return await orAbort(getOrCreateTurnSandbox(turn, signal).cellSession, signal);
  } catch (error) {
    const status = signal?.aborted === true ? "aborted" : toModelCode(error);
    probeUnrunCall(onProbe, { turnId: turn.id, stage: "start", status, error: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}

/** Stores the result and the artifacts of a successful cell. If one of them cannot be stored, the others still are. */
async function publish(
  turn: InterpreterTurn,
  { resultJson: json, artifacts }: CellOutcome,
  { tool, call }: { tool: string; call: CodeInterpreterCall },
): Promise<Pick<ToolResultParts, "error" | "artifacts" | "resultAlias">> {
  const keepResult = async (): Promise<string | null> =>
    json === null ? null : (await turn.evidence.keepResult({ json, from: tool, arguments: call.postProcessingContract })).alias;
  const [[result], published] = await Promise.all([Promise.allSettled([keepResult()]), publishArtifacts(artifacts, turn.artifacts)]);
  const failed = [result, ...published].find((one) => one.status === "rejected");
  return {
    error: failed && toFailureToolError(failed.reason, tool),
    artifacts: published.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])),
    resultAlias: result.status === "fulfilled" ? result.value : null,
  };
}

type CellImage = Extract<CellArtifact, { kind: "image" }>;
type CellChart = Extract<CellArtifact, { kind: "chart" }>;

/** Stores artifacts, which `runCell` has already checked, and gives each its URL. */
async function publishArtifacts(
  artifacts: readonly CellArtifact[],
  store: ArtifactStore,
): Promise<PromiseSettledResult<ArtifactEnvelope>[]> {
  const published: PromiseSettledResult<ArtifactEnvelope>[] = [];
  const breathe = createBreather();
  for (const artifact of artifacts) {
    await breathe(); // hashing and writing the JSON of many large artifacts takes long
    const stored = artifact.kind === "chart" ? publishChart(artifact, store) : publishImage(artifact, store);
    published.push(...(await Promise.allSettled([stored])));
  }
  return published;
}

async function publishChart({ spec, data, title, bytes }: CellChart, store: ArtifactStore): Promise<ArtifactEnvelope> {
  const stored = toStoredBytes(await store.put({ bytes, type: "json" }));
  return { schemaVersion: 1, kind: "chart", ...stored, spec, data, ...(title === undefined ? {} : { title }) };
}

async function publishImage({ alt, title, width, height, bytes, figure }: CellImage, store: ArtifactStore): Promise<ArtifactEnvelope> {
  const stored = toStoredBytes(await store.put({ bytes, type: "png" }));
  const image = { schemaVersion: 1, kind: "image", ...stored, alt, ...(title === undefined ? {} : { title }), width, height } as const;
  if (figure === undefined) return image;
  const json = new TextEncoder().encode(JSON.stringify(figure));
  return { ...image, figure, figureData: toStoredBytes(await store.put({ bytes: json, type: "json", isFigureData: true })) };
}

/** Turns an exception from outside the cell into a tool error. */
export function toFailureToolError(error: unknown, tool: string, moreHints: readonly string[] = []): ToolError {
  const message = error instanceof Error ? error.message : String(error);
  const hints = [...(error instanceof SluiceError && error.hint ? [error.hint] : []), ...moreHints];
  return createToolError({
    code: toModelCode(error),
    tool,
    summary: message || "Internal error without details. See the server log.",
    hints,
  });
}
