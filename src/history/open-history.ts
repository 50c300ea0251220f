import { chmodSync, mkdirSync } from "node:fs";
import path from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { SluiceError, UsageError } from "../errors/sluice-error.ts";
import type { History } from "./history.ts";
import { ReferenceRows } from "./reference-rows.ts";
import {
  createCellRunRows,
  createConversationRows,
  createEventRows,
  createEvidenceRows,
  createLoginRows,
  createTurnRows,
  createUploadRows,
  inTransaction,
} from "./create-rows.ts";
import { historyVersion, migrations } from "./migrations.ts";
import { recoverTurns } from "./recover-turns.ts";
import { sqlite } from "./sqlite.ts";

/** The file appears when it is first opened, readable by its owner alone. One that a newer version wrote is refused and left as it is. */
export function openHistory({ file }: { file: string }): History {
  const database = openDatabase(file);
  try {
    migrate(database, file);
  } catch (error) {
    database.close();
    throw error;
  }
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
    sessions: createLoginRows(database),
    references: new ReferenceRows(database),
    tenants: {
      list: () =>
        database
          .prepare("SELECT tenant FROM conversations UNION SELECT tenant FROM published ORDER BY tenant")
          .all()
          .map(({ tenant }) => String(tenant)),
    },
    exclusively: (work) => inTransaction(database, work),
    rehearse: (work) => rehearse(database, work),
    recover: (at) => recoverTurns({ database, turns, events, at }),
    close,
    [Symbol.dispose]: close,
  };
}

function openDatabase(file: string): DatabaseSync {
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    const database = new sqlite.DatabaseSync(file, { timeout: 10_000 });
    chmodSync(file, 0o600);
    // A commit that the machine's loss of power undoes is one of the last moments; the file stays whole.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 1000;");
    return database;
  } catch (error) {
    throw new SluiceError({
      code: "HISTORY_UNAVAILABLE",
      message: `The history cannot be opened at ${file}: ${(error as Error).message}.`,
      hint: "Free space, mend its permissions, or choose another directory (artifacts.directory).",
      cause: error,
    });
  }
}

function migrate(database: DatabaseSync, file: string): void {
  const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
  if (version > historyVersion) throw tooNew(file, version);
  if (version === historyVersion) return;
  inTransaction(database, () => {
    for (const step of migrations.slice(version)) database.exec(step);
    database.exec(`PRAGMA user_version = ${historyVersion}`);
  });
}

function rehearse<Value>(database: DatabaseSync, work: () => Value): Value {
  database.exec("BEGIN IMMEDIATE");
  try {
    return work();
  } finally {
    database.exec("ROLLBACK");
  }
}

function tooNew(file: string, version: number): UsageError {
  return new UsageError({
    code: "HISTORY_TOO_NEW",
    message: `The history ${file} has schemaVersion ${version}; this version of Sluice knows up to ${historyVersion}.`,
    hint: "Use the newer version that wrote it, or another directory (artifacts.directory). The file was not changed.",
    details: { file, schemaVersion: version, known: historyVersion },
  });
}
