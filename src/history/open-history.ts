import { chmodSync, existsSync, mkdirSync } from "node:fs";
import path from "node:path";
import type * as Sqlite from "node:sqlite";
import { SluiceError, UsageError } from "../errors/sluice-error.ts";
import type { History } from "./history.ts";
import { createOlderArtifacts, listOlderRows } from "./older-artifacts.ts";
import { Quarantine } from "./quarantine.ts";
import { recoverTurns } from "./recover-turns.ts";
import { ReferenceRows } from "./reference-rows.ts";
import { createConversationRows, createEvidenceRows, createLoginRows, createUploadRows, inTransaction } from "./rows.ts";
import { createStoredSizes } from "./stored-sizes.ts";
import { createCellRunRows, createEventRows, createTurnRows } from "./turn-rows.ts";

/** Loaded at run time instead of imported, so that a Node.js without `node:sqlite` gets as far as the check that reports it as too old. */
export const sqlite: typeof Sqlite = process.getBuiltinModule("node:sqlite");

/**
 * Opens the history, creates its file if needed and migrates it to the current schema. Only the owner can read a new file.
 * Throws HISTORY_UNAVAILABLE, or HISTORY_TOO_NEW for a file of a newer version, which is left unchanged.
 */
export function openHistory({ file }: { file: string }): History {
  const database = openFile(file);
  try {
    migrate(database, file);
  } catch (error) {
    database.close();
    throw error;
  }
  const quarantine = new Quarantine(database);
  const isolate = (tenant: string, turnId: string): void => quarantine.isolateTurn(tenant, turnId);
  const turns = createTurnRows(database, isolate);
  const events = createEventRows(database, isolate);
  const close = (): void => {
    if (database.isOpen) database.close();
  };
  return {
    conversations: createConversationRows(database),
    turns,
    events,
    evidence: createEvidenceRows(database),
    uploads: createUploadRows(database),
    cellRuns: createCellRunRows(database, isolate),
    logins: createLoginRows(database),
    references: new ReferenceRows(database),
    sizes: createStoredSizes(database),
    olderArtifacts: createOlderArtifacts(database),
    quarantine,
    tenants: { list: () => listTenants(database) },
    inTransaction: (work) => inTransaction(database, work),
    dryRun: (work) => dryRun(database, work),
    recoverTurns: (at) => recoverTurns(database, { turns, events, quarantine, at }),
    close,
    [Symbol.dispose]: close,
  };
}

/** How many rows were put aside, without opening the history as `openHistory` does. */
export function countQuarantined(file: string): number {
  if (!existsSync(file)) return 0;
  const database = new sqlite.DatabaseSync(file, { readOnly: true, timeout: 10_000 });
  try {
    const table = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'quarantine'").get();
    return table === undefined ? 0 : new Quarantine(database).count();
  } finally {
    database.close();
  }
}

function listTenants(database: Sqlite.DatabaseSync): string[] {
  const tenants = database.prepare("SELECT tenant FROM conversations UNION SELECT tenant FROM published ORDER BY tenant").all();
  return tenants.map(({ tenant }) => String(tenant));
}

function dryRun<Value>(database: Sqlite.DatabaseSync, work: () => Value): Value {
  database.exec("BEGIN IMMEDIATE");
  try {
    return work();
  } finally {
    database.exec("ROLLBACK");
  }
}

function openFile(file: string): Sqlite.DatabaseSync {
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    const database = new sqlite.DatabaseSync(file, { timeout: 10_000 });
    chmodSync(file, 0o600);
    // With WAL and `synchronous = NORMAL` a power failure may lose the last commits, but never corrupts the file.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 1000;");
    return database;
  } catch (error) {
    throw new SluiceError({
      code: "HISTORY_UNAVAILABLE",
      message: `The history cannot be opened at ${file}: ${(error as Error).message}.`,
      hint: "Free disk space, fix the file permissions, or choose another directory (artifacts.directory).",
      cause: error,
    });
  }
}

function migrate(database: Sqlite.DatabaseSync, file: string): void {
  const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
  if (version > migrations.length) throw tooNew(file, version);
  if (version === migrations.length) return;
  inTransaction(database, () => {
    for (const migration of migrations.slice(version)) database.exec(migration);
    database.exec(`PRAGMA user_version = ${migrations.length}`);
  });
}

function tooNew(file: string, version: number): UsageError {
  const known = migrations.length;
  return new UsageError({
    code: "HISTORY_TOO_NEW",
    message: `The history ${file} has schema version ${version}; this version of Sluice supports versions up to ${known}.`,
    hint: "Use the newer version of Sluice that wrote it, or another directory (artifacts.directory). The file was not changed.",
    details: { file, schemaVersion: version, known },
  });
}

/** Migration n brings a file from schema version n to n + 1. The first one creates the tables. Never change one that was released. */
export const migrations: readonly string[] = [
  `
  CREATE TABLE conversations (
    tenant TEXT NOT NULL, id TEXT NOT NULL, title TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX conversations_by_use ON conversations (tenant, updated_at, id);

  CREATE TABLE turns (
    position INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, conversation_id TEXT NOT NULL, question TEXT NOT NULL,
    status TEXT NOT NULL, created_at TEXT NOT NULL, ended_at TEXT, stop_reason TEXT, superseded_by TEXT,
    answer TEXT, result TEXT, dataset_id TEXT, dataset_hash TEXT, dataset_bytes INTEGER, idempotency_key TEXT, request_hash TEXT,
    UNIQUE (tenant, id), UNIQUE (tenant, idempotency_key)
  ) STRICT;
  CREATE INDEX turns_of_conversation ON turns (tenant, conversation_id, position);
  CREATE INDEX turns_by_dataset ON turns (tenant, dataset_id);

  CREATE TABLE events (
    tenant TEXT NOT NULL, turn_id TEXT NOT NULL, seq INTEGER NOT NULL, at TEXT NOT NULL, event TEXT NOT NULL,
    PRIMARY KEY (tenant, turn_id, seq)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE evidence (
    position INTEGER PRIMARY KEY, tenant TEXT NOT NULL, conversation_id TEXT NOT NULL, alias TEXT NOT NULL, turn_id TEXT,
    record TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL,
    UNIQUE (tenant, conversation_id, alias)
  ) STRICT;
  CREATE INDEX evidence_by_hash ON evidence (tenant, sha256);

  CREATE TABLE uploads (
    position INTEGER PRIMARY KEY, tenant TEXT NOT NULL, conversation_id TEXT NOT NULL, alias TEXT NOT NULL, at TEXT NOT NULL,
    record TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL,
    UNIQUE (tenant, conversation_id, alias)
  ) STRICT;
  CREATE INDEX uploads_by_hash ON uploads (tenant, sha256);

  CREATE TABLE artifacts (
    tenant TEXT NOT NULL, turn_id TEXT NOT NULL, content_hash TEXT NOT NULL, type TEXT NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (tenant, turn_id, content_hash, type)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX artifacts_by_hash ON artifacts (tenant, content_hash);

  CREATE TABLE cell_runs (
    position INTEGER PRIMARY KEY, tenant TEXT NOT NULL, turn_id TEXT NOT NULL, run TEXT NOT NULL
  ) STRICT;
  CREATE INDEX cell_runs_of_turn ON cell_runs (tenant, turn_id, position);

  CREATE TABLE sessions (
    sha256 TEXT PRIMARY KEY, tenant TEXT NOT NULL, is_operator INTEGER NOT NULL, expires_at TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE published (
    tenant TEXT NOT NULL, content_hash TEXT NOT NULL, type TEXT NOT NULL, bytes INTEGER NOT NULL, published_at TEXT NOT NULL,
    PRIMARY KEY (tenant, content_hash, type)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX published_by_age ON published (tenant, published_at);
  `,
  `
  CREATE TABLE dataset_bodies (
    tenant TEXT NOT NULL, turn_id TEXT NOT NULL, sha256 TEXT NOT NULL,
    PRIMARY KEY (tenant, turn_id, sha256)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX dataset_bodies_by_hash ON dataset_bodies (tenant, sha256);
  `,
  "ALTER TABLE conversations ADD COLUMN subject TEXT;",
  "ALTER TABLE conversations ADD COLUMN subject_since INTEGER NOT NULL DEFAULT 0;", // the position of the last turn of another subject
  listOlderRows,
  `
  CREATE TABLE quarantine (
    position INTEGER PRIMARY KEY, tenant TEXT NOT NULL, conversation_id TEXT NOT NULL, turn_id TEXT, kind TEXT NOT NULL, name TEXT NOT NULL,
    reason TEXT NOT NULL, at TEXT NOT NULL, content TEXT
  ) STRICT;
  CREATE INDEX quarantine_of_conversation ON quarantine (tenant, conversation_id);
  CREATE INDEX quarantine_of_turn ON quarantine (tenant, turn_id);
  `,
];
