import { randomUUID } from "node:crypto";
import { createMemoryStore } from "../../artifacts/create-memory-store.ts";
import type { EvidenceItem, EvidenceStore } from "../../evidence/contract.ts";
import { runCodeInterpreter, type CodeInterpreterAnswer } from "../../interpreter/code-interpreter.ts";
import type { InterpreterTurn } from "../../interpreter/turn.ts";
import { disposeTurnSandbox } from "../../interpreter/turn-sandbox.ts";
import type { CellRun } from "../../protocol/http-cells.ts";
import type { CellStartEvent } from "../../protocol/turn-events.ts";
import type { LiveConversation } from "../conversations/create-conversations.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../server-parts.ts";
import type { PlayedCell } from "../turns/list-cells.ts";

export interface CellAgain {
  readonly live: LiveConversation;
  readonly turnId: string;
  readonly cell: PlayedCell;
  readonly code: string;
  readonly signal: AbortSignal;
}

const PREVIEW_CHARACTERS = 64 * 1024;

/**
 * One cell of a turn with other code, in a sandbox of its own: the cells before it are run again first, without publishing anything, so that it begins where
 * the old one began. What it gives stands beside what the old one gave.
 */
export async function runCellAgain(parts: ServerParts, { live, turnId, cell, code, signal }: CellAgain): Promise<CellRun> {
  const { runtime } = parts.configured;
  const { evidence } = live;
  const runId = randomUUID();
  const options = { id: runId, onProbe: parts.metrics.probe };
  const replay = runtime.createTurn({ ...options, evidence: withoutResults(evidence), artifacts: createMemoryStore() });
  const again = runtime.createTurn({ ...options, evidence, artifacts: parts.storesOf(live.tenant).artifactsFor(turnId) });
  try {
    for (const [index, start] of cell.before.entries()) await playBefore(replay, { start, number: index + 1, signal });
    again.sandbox = replay.sandbox;
    replay.sandbox = null;
    const answer = await runCodeInterpreter(
      again,
      { ...toCall(cell.start), code, postProcessingContract: contractFor(cell.start, code) },
      { signal },
    );
    return toRun(answer, { runId, turnId, cell, code });
  } finally {
    await Promise.all([disposeTurnSandbox(replay), disposeTurnSandbox(again)]);
  }
}

async function playBefore(
  turn: InterpreterTurn,
  { start, number, signal }: { start: CellStartEvent; number: number; signal: AbortSignal },
): Promise<void> {
  const { envelope } = await runCodeInterpreter(turn, toCall(start), { signal });
  if (envelope === null) return;
  throw new HttpFailure({
    status: 422,
    code: "CELL_NOT_REPLAYED",
    message: `Cell ${number}, which comes before it, gave no result this time: ${envelope.summary}`,
    hint: "Nothing was changed. What it needs may have been removed since.",
    details: { envelope },
  });
}

function toCall({ code, inputs, postProcessingContract }: CellStartEvent): object {
  return { code, ...(inputs === undefined ? {} : { inputs }), postProcessingContract };
}

/** By hand nothing is declared: what the code hands over is what is expected of it. */
function contractFor({ postProcessingContract }: CellStartEvent, code: string): object {
  const emits = { image: /\bsave_figure\s*\(/.test(code), chart: /\brender_chart\s*\(/.test(code) };
  return { ...postProcessingContract, expectedArtifacts: (["image", "chart"] as const).filter((kind) => emits[kind]) };
}

/** Evidence that a replayed cell reads, and adds nothing to. */
function withoutResults(evidence: EvidenceStore): EvidenceStore {
  const keepResult = async (): Promise<EvidenceItem> => ({ alias: "replayed" }) as EvidenceItem;
  return Object.create(evidence, { keepResult: { value: keepResult } }) as EvidenceStore;
}

function toRun(
  { outcome, envelope, artifacts, resultAlias }: CodeInterpreterAnswer,
  { runId, turnId, cell, code }: { runId: string; turnId: string; cell: PlayedCell; code: string },
): CellRun {
  if (outcome === null) throw refused(envelope);
  const { status, error, stdout, stderr, resultJson, diagnostics, timing } = outcome;
  const { document } = cell;
  return {
    runId,
    turnId,
    cell: document.cell,
    code,
    at: new Date().toISOString(),
    status,
    error:
      error === undefined
        ? null
        : {
            type: error.type,
            message: error.message,
            ...(error.line === undefined ? {} : { line: error.line }),
            ...(error.traceback === undefined ? {} : { traceback: error.traceback }),
          },
    stdout,
    stderr,
    resultAlias,
    resultPreview: resultJson === null ? null : resultJson.slice(0, PREVIEW_CHARACTERS),
    isResultCut: (resultJson?.length ?? 0) > PREVIEW_CHARACTERS,
    artifacts: [...artifacts],
    diagnostics,
    timing,
    previous: { code: document.code, resultAlias: document.resultAlias, artifacts: document.artifacts },
  };
}

/** The code was not run: it is not Python, or imports what is not there. */
function refused(envelope: CodeInterpreterAnswer["envelope"]): HttpFailure {
  const { error_code: code = "INTERNAL_ERROR", summary: message = "The cell was not run.", hints = [] } = envelope ?? {};
  return new HttpFailure({
    status: code === "QUEUE_FULL" ? 429 : 422,
    code,
    message,
    ...(hints.length === 0 ? {} : { hint: hints.join(" ") }),
    ...(envelope === null ? {} : { details: { envelope } }),
    ...(code === "QUEUE_FULL" ? { retryAfterSeconds: 5 } : {}),
  });
}
