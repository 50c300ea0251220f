import { randomUUID } from "node:crypto";
import type { StoredEvent } from "../../../history/history.ts";
import { runCodeInterpreter } from "../../../interpreter/code-interpreter.ts";
import type { ToolResult } from "../../../interpreter/tool-result.ts";
import { disposeTurnSandbox, type InterpreterTurn } from "../../../interpreter/turn.ts";
import { type CellRun, type CellRunCreation, cellRunCreationSchema, cellRunSchema } from "../../../protocol/http-cells.ts";
import type { CellStartEvent } from "../../../protocol/turn-events.ts";
import type { LiveConversation } from "../conversations.ts";
import { HttpFailure, toHttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";
import { findEndedTurn, listCells, type PlayedCell } from "../turns/to-turn-document.ts";
import { json, type Route } from "./route.ts";

/** Code by hand: one cell of a turn with other words in it. */
export function cellRoutes(
  parts: Pick<ServerParts, "history" | "turns" | "conversations" | "gate" | "configured" | "storesOf" | "metrics">,
): Route[] {
  const { history, conversations, gate } = parts;
  return [
    {
      method: "post",
      path: "/api/cells",
      operationId: "runCell",
      beginsWork: {},
      summary: "Run one cell of an ended turn again with other code, from the state that it began with. What the turn gave stays.",
      body: cellRunCreationSchema,
      answers: { 200: { description: "What it gave; a cell that failed is an answer, too.", schema: cellRunSchema } },
      async handle({ body, principal: { tenant }, signal }) {
        const { turnId, cell: number, code } = body as CellRunCreation;
        const { conversationId } = findEndedTurn(parts, tenant, turnId);
        return await conversations.use({ tenant, id: conversationId }, async (live) => {
          live.runAgain.push(turnId);
          try {
            findEndedTurn(parts, tenant, turnId); // nobody can remove it from here on
            const cell = findCell(history.events.read({ tenant, turnId }), number);
            const wanted = AbortSignal.any([signal, live.removed]);
            const work = async (): Promise<CellRun> => {
              const run = await runCellAgain(parts, { live, turnId, cell, code, signal: wanted });
              if (run.resultAlias !== null) await conversations.save(live, turnId, [run.resultAlias]);
              history.cellRuns.add(tenant, run);
              return run;
            };
            return json(await gate.run(work, wanted, tenant));
          } finally {
            live.runAgain.splice(live.runAgain.indexOf(turnId), 1);
          }
        });
      },
    },
  ];
}

function findCell(events: readonly StoredEvent[], number: number): PlayedCell {
  const cells = listCells(events);
  const cell = cells[number - 1];
  if (cell !== undefined) return cell;
  throw new HttpFailure({ code: "CELL_NOT_FOUND", message: `The turn has ${cells.length} cells, and no cell ${number}.` });
}

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
async function runCellAgain(
  { configured, storesOf, metrics }: Pick<ServerParts, "configured" | "storesOf" | "metrics">,
  { live, turnId, cell, code, signal }: CellAgain,
): Promise<CellRun> {
  const { runtime } = configured;
  const runId = randomUUID();
  const artifacts = storesOf(live.tenant).artifactsFor(turnId);
  const turn = runtime.createTurn({ id: runId, evidence: live.evidence, artifacts, onProbe: metrics.probe, publishes: false });
  try {
    for (const [index, start] of cell.before.entries()) await playBefore(turn, { start, number: index + 1, signal });
    turn.publishes = true;
    const answer = await runCodeInterpreter(
      turn,
      { ...toCall(cell.start), code, postProcessingContract: contractFor(cell.start, code) },
      { signal },
    );
    return toRun(answer, { runId, turnId, cell, code });
  } finally {
    await disposeTurnSandbox(turn);
  }
}

async function playBefore(
  turn: InterpreterTurn,
  { start, number, signal }: { start: CellStartEvent; number: number; signal: AbortSignal },
): Promise<void> {
  const { error: toolError } = await runCodeInterpreter(turn, toCall(start), { signal });
  if (toolError === null) return;
  throw new HttpFailure({
    code: "CELL_NOT_REPLAYED",
    message: `Cell ${number}, which comes before it, gave no result this time: ${toolError.summary}`,
    hint: "Nothing was changed. What it needs may have been removed since.",
    details: { toolError },
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

function toRun(
  { outcome, error: toolError, artifacts, resultAlias }: ToolResult,
  { runId, turnId, cell, code }: { runId: string; turnId: string; cell: PlayedCell; code: string },
): CellRun {
  if (outcome === null) throw toHttpFailure(toolError!); // it was not run
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
