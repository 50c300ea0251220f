import { cellRunCreationSchema, cellRunSchema, type CellRunCreation } from "../../protocol/http-cells.ts";
import type { StoredEvent } from "../../history/contract.ts";
import { runCellAgain } from "../cells/run-cell-again.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../server-parts.ts";
import { findEndedTurn } from "../turns/find-turn.ts";
import { listCells, type PlayedCell } from "../turns/list-cells.ts";
import { defineRoute, json, type Route } from "./define-route.ts";

/** Code by hand: one cell of a turn with other words in it. */
export function cellRoutes(parts: ServerParts): Route[] {
  const { history, conversations, gate } = parts;
  return [
    defineRoute({
      method: "post",
      path: "/api/cells",
      operationId: "runCell",
      beginsWork: {},
      summary: "Run one cell of an ended turn again with other code, from the state that it began with. What the turn gave stays.",
      tag: "cells",
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
            const leave = await gate.enter(tenant, wanted);
            try {
              const run = await runCellAgain(parts, { live, turnId, cell, code, signal: wanted });
              if (run.resultAlias !== null) await conversations.save(live, turnId, [run.resultAlias]);
              history.cellRuns.add(tenant, run);
              return json(run);
            } finally {
              leave();
            }
          } finally {
            live.runAgain.splice(live.runAgain.indexOf(turnId), 1);
          }
        });
      },
    }),
  ];
}

function findCell(events: readonly StoredEvent[], number: number): PlayedCell {
  const cells = listCells(events);
  const cell = cells[number - 1];
  if (cell !== undefined) return cell;
  throw new HttpFailure({ status: 404, code: "CELL_NOT_FOUND", message: `The turn has ${cells.length} cells, and no cell ${number}.` });
}
