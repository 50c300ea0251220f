import { cellRunCreationSchema, cellRunSchema, type CellRunCreation } from "../../protocol/http-cells.ts";
import { runCellAgain } from "../cells/run-cell-again.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../server-parts.ts";
import { listCells } from "../turns/list-cells.ts";
import { defineRoute, json, type Route } from "./define-route.ts";

/** Code by hand: one cell of a turn with other words in it. */
export function cellRoutes(parts: ServerParts): Route[] {
  const { history, turns, gate } = parts;
  return [
    defineRoute({
      method: "post",
      path: "/api/cells",
      operationId: "runCell",
      summary: "Run one cell of an ended turn again with other code, from the state that it began with. What the turn gave stays.",
      tag: "cells",
      body: cellRunCreationSchema,
      answers: { 200: { description: "What it gave; a cell that failed is an answer, too.", schema: cellRunSchema } },
      async handle({ body, principal: { tenant }, signal }) {
        const { turnId, cell: number, code } = body as CellRunCreation;
        const turn = history.turns.get(tenant, turnId);
        if (turn === null) throw new HttpFailure({ status: 404, code: "TURN_NOT_FOUND", message: `There is no turn ${turnId}.` });
        if (turns.find(tenant, turnId) !== null)
          throw new HttpFailure({
            status: 409,
            code: "TURN_RUNNING",
            message: "The turn still runs; its cells can be run again when it has ended.",
          });
        const cells = listCells(history.events.read({ tenant, turnId }));
        const cell = cells[number - 1];
        if (cell === undefined)
          throw new HttpFailure({
            status: 404,
            code: "CELL_NOT_FOUND",
            message: `The turn has ${cells.length} cells, and no cell ${number}.`,
          });
        const leave = await gate.enter(tenant, signal);
        try {
          return await parts.conversations.use({ tenant, id: turn.conversationId }, async (live) => {
            const run = await runCellAgain(parts, { live, turnId, cell, code, signal });
            await parts.conversations.save(live, turnId);
            history.cellRuns.add(tenant, run);
            return json(run);
          });
        } finally {
          leave();
        }
      },
    }),
  ];
}
