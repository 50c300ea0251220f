import { randomUUID } from "node:crypto";
import type { StoredEvent } from "../../../history/history.ts";
import { runCodeInterpreter } from "../../../interpreter/code-interpreter.ts";
import type { ToolResult } from "../../../interpreter/tool-result.ts";
import { disposeTurnSandbox, type InterpreterTurn } from "../../../interpreter/interpreter-turn.ts";
import { toArtifactReference } from "../../../protocol/artifact-reference.ts";
import { type CellRun, type CellRunCreation, cellRunCreationSchema, cellRunSchema } from "../../../protocol/http-cells.ts";
import type { CellStartEvent } from "../../../protocol/turn-events.ts";
import type { LiveConversation } from "../conversations.ts";
import { HttpFailure, toHttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";
import { findEndedTurn, listCells, type TurnCell } from "../turns/turn-document.ts";
import { json, type Route, type RouteRequest } from "./route.ts";

type CellParts = Pick<ServerParts, "history" | "turns" | "conversations" | "turnLimiter" | "configured" | "storesOf" | "metrics">;

/** Reruns a cell of a turn with code that the user has edited. */
export function cellRoutes(parts: CellParts): Route[] {
  return [
    {
      method: "post",
      path: "/api/cells",
      operationId: "runCell",
      beginsWork: {},
      summary:
        "Run a cell of an ended turn again with other code, from the state in which it began. The result of the turn does not change.",
      body: cellRunCreationSchema,
      responses: { 200: { description: "The outcome of the cell. A failure of its code is also an outcome.", schema: cellRunSchema } },
      handle: (request) => rerunCell(parts, request),
    },
  ];
}

async function rerunCell(
  parts: CellParts,
  { body, principal: { tenant, subject }, signal: requestSignal }: RouteRequest,
): Promise<Response> {
  const { history, conversations, turnLimiter } = parts;
  const { turnId, cell: number, code } = body as CellRunCreation;
  const { conversationId } = findEndedTurn(parts, tenant, turnId);
  return await conversations.use({ tenant, id: conversationId }, async (live) => {
    live.rerunTurnIds.push(turnId); // from here on the turn cannot be deleted
    try {
      findEndedTurn(parts, tenant, turnId); // it may have been deleted before that
      if (history.conversations.subjectOf(tenant, conversationId) !== subject) throw otherSubject(turnId);
      const cell = findCell(history.events.read({ tenant, turnId }), number);
      const signal = AbortSignal.any([requestSignal, live.removalSignal]);
      const work = async (): Promise<CellRun> => {
        const run = await runCellAgain(parts, { live, turnId, cell, code, signal });
        if (run.resultAlias !== null) await conversations.saveEvidence(live, turnId, [run.resultAlias]);
        history.cellRuns.add(tenant, run);
        return run;
      };
      return json(await turnLimiter.run(work, signal, tenant));
    } finally {
      live.rerunTurnIds.splice(live.rerunTurnIds.indexOf(turnId), 1);
    }
  });
}

/** Its cells compute with data that were fetched for another account. */
function otherSubject(turnId: string): HttpFailure {
  return new HttpFailure({ code: "TURN_OF_OTHER_SUBJECT", message: `The turn ${turnId} acted for another account.` });
}

function findCell(events: readonly StoredEvent[], number: number): TurnCell {
  const cells = listCells(events);
  const cell = cells[number - 1];
  if (cell !== undefined) return cell;
  throw new HttpFailure({ code: "CELL_NOT_FOUND", message: `The turn has no cell ${number} (cells: ${cells.length}).` });
}

const PREVIEW_CHARACTERS = 64 * 1024;

/** Runs the cell in a new sandbox. The cells before it are replayed first, without publishing artifacts, to recreate its state. */
async function runCellAgain(
  { configured, storesOf, metrics }: Pick<ServerParts, "configured" | "storesOf" | "metrics">,
  { live, turnId, cell, code, signal }: { live: LiveConversation; turnId: string; cell: TurnCell; code: string; signal: AbortSignal },
): Promise<CellRun> {
  const { runtime } = configured;
  const runId = randomUUID();
  live.storage.check("A cell's run", 0);
  const artifacts = storesOf(live.tenant).artifactsFor(turnId, live.storage);
  const turn = runtime.createTurn({ id: runId, evidence: live.evidence, artifacts, onProbe: metrics.onProbe, publishes: false });
  try {
    for (const [index, start] of cell.before.entries()) await replayCell(turn, { start, number: index + 1, signal });
    turn.publishes = true;
    const call = { ...toCall(cell.start), code, postProcessingContract: toCallContract(cell.start, code) };
    return toCellRun(await runCodeInterpreter(turn, call, { signal }), { runId, turnId, cell, code });
  } finally {
    await disposeTurnSandbox(turn);
  }
}

async function replayCell(
  turn: InterpreterTurn,
  { start, number, signal }: { start: CellStartEvent; number: number; signal: AbortSignal },
): Promise<void> {
  const { error: toolError } = await runCodeInterpreter(turn, toCall(start), { signal });
  if (toolError === null) return;
  throw new HttpFailure({
    code: "CELL_NOT_REPLAYED",
    message: `The earlier cell ${number} failed when it was run again: ${toolError.summary}`,
    hint: "Nothing was changed. Data that the cell needs may have been removed.",
    details: { toolError },
  });
}

function toCall({ code, inputs, postProcessingContract }: CellStartEvent): object {
  return { code, inputs, postProcessingContract };
}

/** A person does not declare artifacts, so those that the code emits are expected. */
function toCallContract({ postProcessingContract }: CellStartEvent, code: string): object {
  const emits = { image: /\bsave_figure\s*\(/.test(code), chart: /\brender_chart\s*\(/.test(code) };
  return { ...postProcessingContract, expectedArtifacts: (["image", "chart"] as const).filter((kind) => emits[kind]) };
}

function toCellRun(
  { outcome, error: toolError, artifacts, resultAlias }: ToolResult,
  { runId, turnId, cell, code }: { runId: string; turnId: string; cell: TurnCell; code: string },
): CellRun {
  if (outcome === null) throw toHttpFailure(toolError!); // the cell did not run
  const { status, error, stdout, stderr, resultJson, diagnostics, timing } = outcome;
  const { document } = cell;
  return {
    runId,
    turnId,
    cell: document.cell,
    code,
    at: new Date().toISOString(),
    status,
    error: error === undefined ? null : { type: error.type, message: error.message, line: error.line, traceback: error.traceback },
    stdout,
    stderr,
    resultAlias,
    resultPreview: resultJson === null ? null : resultJson.slice(0, PREVIEW_CHARACTERS),
    isResultCut: (resultJson?.length ?? 0) > PREVIEW_CHARACTERS,
    artifacts: artifacts.map(toArtifactReference),
    diagnostics,
    timing,
    previous: { code: document.code, resultAlias: document.resultAlias, artifacts: document.artifacts },
  };
}
