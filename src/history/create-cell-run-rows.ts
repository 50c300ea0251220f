import type { DatabaseSync } from "node:sqlite";
import type { CellRun } from "../protocol/http-cells.ts";
import type { CellRunRows } from "./contract.ts";

export function createCellRunRows(database: DatabaseSync): CellRunRows {
  const insert = database.prepare("INSERT INTO cell_runs (tenant, turn_id, run) VALUES (?, ?, ?)");
  const select = database.prepare("SELECT run FROM cell_runs WHERE tenant = ? AND turn_id = ? ORDER BY position");
  return {
    add: (tenant, run) => void insert.run(tenant, run.turnId, JSON.stringify(run)),
    list: (tenant, turnId) => select.all(tenant, turnId).map(({ run }) => JSON.parse(String(run)) as CellRun),
  };
}
