import type { DatabaseSync } from "node:sqlite";
import type { History } from "./history.ts";
import { inTransaction, openDatabase } from "./open-database.ts";
import { recoverTurns } from "./recover-turns.ts";
import { ReferenceRows } from "./reference-rows.ts";
import {
  createCellRunRows,
  createConversationRows,
  createEventRows,
  createEvidenceRows,
  createLoginRows,
  createTurnRows,
  createUploadRows,
} from "./rows.ts";

/** Opens the history and creates the file if needed. Throws as `openDatabase` does. */
export function openHistory({ file }: { file: string }): History {
  const database = openDatabase(file);
  const turns = createTurnRows(database);
  const events = createEventRows(database);
  const close = (): void => {
    if (database.isOpen) database.close();
  };
  return {
    conversations: createConversationRows(database),
    turns,
    events,
    evidence: createEvidenceRows(database),
    uploads: createUploadRows(database),
    cellRuns: createCellRunRows(database),
    logins: createLoginRows(database),
    references: new ReferenceRows(database),
    tenants: { list: () => listTenants(database) },
    inTransaction: (work) => inTransaction(database, work),
    dryRun: (work) => dryRun(database, work),
    recoverTurns: (at) => recoverTurns(database, { turns, events, at }),
    close,
    [Symbol.dispose]: close,
  };
}

function listTenants(database: DatabaseSync): string[] {
  const tenants = database.prepare("SELECT tenant FROM conversations UNION SELECT tenant FROM published ORDER BY tenant").all();
  return tenants.map(({ tenant }) => String(tenant));
}

function dryRun<Value>(database: DatabaseSync, work: () => Value): Value {
  database.exec("BEGIN IMMEDIATE");
  try {
    return work();
  } finally {
    database.exec("ROLLBACK");
  }
}
