import type { DatabaseSync } from "node:sqlite";
import type { CellRun } from "../protocol/http-cells.ts";
import type { TurnStatus } from "../protocol/http-turns.ts";
import type { TurnEvent } from "../protocol/turn-events.ts";
import type { RecordedResult } from "../protocol/turn-result.ts";
import { clipText, endOf } from "../text/clip-text.ts";
import type {
  ListedConversation,
  ListOptions,
  NewTurn,
  Page,
  StoredConversation,
  StoredEvent,
  StoredEvidence,
  StoredLogin,
  StoredTurn,
  UploadRow,
} from "./history.ts";

const SNIPPET_BEFORE = 40;
const SNIPPET_CHARACTERS = 160;

// Each function prepares the statements of one table. Rows are cast without checks: the tables are STRICT, and the queries rename columns to the fields of history.ts.

interface NewConversationRow {
  readonly tenant: string;
  readonly id: string;
  readonly title: string;
  readonly at: string;
  readonly subject?: string | null;
}

export type ConversationRows = ReturnType<typeof createConversationRows>;

export function createConversationRows(database: DatabaseSync) {
  const columns = "c.tenant, c.id, c.title, c.created_at AS createdAt, c.updated_at AS updatedAt";
  const insert = database.prepare(
    "INSERT INTO conversations (tenant, id, title, created_at, updated_at, subject) VALUES (:tenant, :id, :title, :at, :at, :subject) ON CONFLICT DO NOTHING",
  );
  const select = database.prepare(`SELECT ${columns} FROM conversations c WHERE tenant = ? AND id = ?`);
  const rename = database.prepare("UPDATE conversations SET title = ? WHERE tenant = ? AND id = ?");
  const touch = database.prepare(touchConversation);
  const changeSubject = database.prepare(
    `UPDATE conversations SET subject = :subject,
       subject_since = (SELECT coalesce(max(position), 0) FROM turns t WHERE t.tenant = :tenant AND t.conversation_id = :id)
     WHERE tenant = :tenant AND id = :id AND subject IS NOT :subject`,
  );
  const selectSubject = database.prepare("SELECT subject FROM conversations WHERE tenant = ? AND id = ?");
  const list = database.prepare(
    `SELECT ${columns}, (SELECT count(*) FROM turns t WHERE t.tenant = c.tenant AND t.conversation_id = c.id AND t.superseded_by IS NULL) AS turns,
       CASE WHEN :pattern = '%' THEN NULL ELSE (
         SELECT CASE WHEN t.question LIKE :pattern ESCAPE '\\' THEN t.question ELSE t.answer END FROM turns t
         WHERE t.tenant = c.tenant AND t.conversation_id = c.id AND t.superseded_by IS NULL
           AND (t.question LIKE :pattern ESCAPE '\\' OR t.answer LIKE :pattern ESCAPE '\\')
         ORDER BY t.position LIMIT 1) END AS snippet
     FROM conversations c
     WHERE c.tenant = :tenant AND (c.updated_at, c.id) < (:at, :id) AND (c.title LIKE :pattern ESCAPE '\\' OR snippet IS NOT NULL)
     ORDER BY c.updated_at DESC, c.id DESC LIMIT :limit`,
  );
  return {
    /** Creates the conversation unless it exists. `subject`: whom the token of the request stands for. */
    ensure: ({ subject = null, ...conversation }: NewConversationRow): void => void insert.run({ ...conversation, subject }),
    /** Remembers whom the latest turn acts for. Returns whether that was another subject before. */
    changeSubject: ({ tenant, id, subject }: { tenant: string; id: string; subject: string | null }): boolean =>
      changeSubject.run({ tenant, id, subject }).changes === 1,
    /** Whom the latest turn of the conversation acted for. */
    subjectOf: (tenant: string, id: string): string | null =>
      (selectSubject.get(tenant, id) as { subject: string | null } | undefined)?.subject ?? null,
    get: (tenant: string, id: string) => (select.get(tenant, id) as StoredConversation | undefined) ?? null,
    list({ tenant, limit, before, search = "" }: ListOptions & { search?: string | undefined }): Page<ListedConversation> {
      const [at, id] = fromCursor(before, ["\uFFFF", "\uFFFF"]);
      const rows = list.all({ tenant, at, id, limit: limit + 1, pattern: toLikePattern(search) }) as unknown as ListedConversation[];
      const items = rows.slice(0, limit).map((row) => ({ ...row, snippet: row.snippet === null ? null : toSnippet(row.snippet, search) }));
      const last = items.at(-1);
      return { items, next: rows.length > limit && last !== undefined ? toCursor([last.updatedAt, last.id]) : null };
    },
    rename: (tenant: string, id: string, title: string): void => void rename.run(title, tenant, id),
    touch: (tenant: string, id: string, at: string): void => void touch.run(at, tenant, id),
  };
}

const touchConversation = "UPDATE conversations SET updated_at = max(updated_at, ?) WHERE tenant = ? AND id = ?";

/** A LIKE pattern that finds the text anywhere, with wildcards escaped. */
function toLikePattern(search: string): string {
  const text = search.trim();
  return text === "" ? "%" : `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
}

/** The text around the first match. */
function toSnippet(text: string, search: string): string {
  const at = Math.max(0, text.toLowerCase().indexOf(search.toLowerCase()) - SNIPPET_BEFORE);
  return `${at > 0 ? "…" : ""}${clipText(endOf(text, text.length - at), SNIPPET_CHARACTERS, () => "…")}`;
}

type TurnRow = Omit<StoredTurn, "result"> & { readonly position: number; readonly result: string | null };

export type TurnRows = ReturnType<typeof createTurnRows>;

export function createTurnRows(database: DatabaseSync) {
  const statements = prepareTurnStatements(database);
  return {
    begin({ tenant, turnId, conversationId, question, at, supersedes = [], idempotency }: NewTurn): void {
      inTransaction(database, () => {
        const { key = null, requestHash = null } = idempotency ?? {};
        statements.insert.run({ tenant, turnId, conversationId, question, at, key, requestHash });
        for (const id of supersedes) statements.supersede.run(turnId, tenant, id);
        statements.touchConversation.run(at, tenant, conversationId);
      });
    },
    end({ tenant, turnId, result, at }: { tenant: string; turnId: string; result: RecordedResult; at: string }): void {
      const { outcome, answer, dataset, conversationId } = result;
      inTransaction(database, () => {
        statements.end.run({
          tenant,
          turnId,
          at,
          stopReason: outcome.stopReason,
          answer,
          result: JSON.stringify(result),
          datasetId: dataset?.datasetId ?? null,
          datasetHash: dataset?.hash ?? null,
          datasetBytes: dataset?.bytes ?? null,
        });
        statements.touchConversation.run(at, tenant, conversationId);
      });
    },
    get(tenant: string, turnId: string): StoredTurn | null {
      const row = statements.select.get(tenant, turnId) as TurnRow | undefined;
      return row === undefined ? null : toTurn(row);
    },
    /** Latest first. */
    list(options: ListOptions & { conversationId?: string | undefined; status?: TurnStatus | undefined }): Page<StoredTurn> {
      const { tenant, limit, before, conversationId = null, status = null } = options;
      const [cursor] = fromCursor(before, [String(Number.MAX_SAFE_INTEGER), ""]);
      const query = { tenant, limit: limit + 1, before: Number(cursor) || 0, conversationId, status };
      const found = statements.list.all(query) as unknown as TurnRow[];
      const rows = found.slice(0, limit);
      const last = rows.at(-1);
      return { items: rows.map(toTurn), next: found.length > limit && last !== undefined ? toCursor([String(last.position), ""]) : null };
    },
    /** Oldest first, without superseded turns. */
    listByConversation: (tenant: string, conversationId: string): StoredTurn[] =>
      (statements.listByConversation.all(tenant, conversationId) as unknown as TurnRow[]).map(toTurn),
    /** Those of `listByConversation` since the conversation last changed its subject. */
    listOfSubject: (tenant: string, conversationId: string): StoredTurn[] =>
      (statements.listOfSubject.all({ tenant, conversationId }) as unknown as TurnRow[]).map(toTurn),
    findByIdempotencyKey: (tenant: string, key: string) =>
      (statements.findByKey.get(tenant, key) as { turnId: string; requestHash: string } | undefined) ?? null,
    /** The hash of a dataset that belongs to a turn. */
    findDataset: (tenant: string, datasetId: string) =>
      (statements.findDataset.get(tenant, datasetId) as { hash: string } | undefined) ?? null,
  };
}

function prepareTurnStatements(database: DatabaseSync) {
  const columns = `position, tenant, id AS turnId, conversation_id AS conversationId, question, status, created_at AS createdAt, ended_at AS endedAt,
    stop_reason AS stopReason, superseded_by AS supersededBy, result`;
  return {
    insert: database.prepare(
      `INSERT INTO turns (tenant, id, conversation_id, question, status, created_at, idempotency_key, request_hash)
       VALUES (:tenant, :turnId, :conversationId, :question, 'running', :at, :key, :requestHash)`,
    ),
    supersede: database.prepare("UPDATE turns SET superseded_by = ? WHERE tenant = ? AND id = ? AND superseded_by IS NULL"),
    touchConversation: database.prepare(touchConversation),
    end: database.prepare(
      `UPDATE turns SET status = 'ended', ended_at = :at, stop_reason = :stopReason, answer = :answer, result = :result,
         dataset_id = :datasetId, dataset_hash = :datasetHash, dataset_bytes = :datasetBytes WHERE tenant = :tenant AND id = :turnId`,
    ),
    select: database.prepare(`SELECT ${columns} FROM turns WHERE tenant = ? AND id = ?`),
    list: database.prepare(
      `SELECT ${columns} FROM turns WHERE tenant = :tenant AND position < :before AND (:conversationId IS NULL OR conversation_id = :conversationId)
       AND (:status IS NULL OR status = :status) ORDER BY position DESC LIMIT :limit`,
    ),
    listByConversation: database.prepare(
      `SELECT ${columns} FROM turns WHERE tenant = ? AND conversation_id = ? AND superseded_by IS NULL ORDER BY position`,
    ),
    listOfSubject: database.prepare(
      `SELECT ${columns} FROM turns WHERE tenant = :tenant AND conversation_id = :conversationId AND superseded_by IS NULL
       AND position > (SELECT subject_since FROM conversations c WHERE c.tenant = :tenant AND c.id = :conversationId) ORDER BY position`,
    ),
    findByKey: database.prepare("SELECT id AS turnId, request_hash AS requestHash FROM turns WHERE tenant = ? AND idempotency_key = ?"),
    findDataset: database.prepare("SELECT dataset_hash AS hash FROM turns WHERE tenant = ? AND dataset_id = ?"),
  };
}

function toTurn(row: TurnRow): StoredTurn {
  const { position: _, result, ...turn } = row;
  return { ...turn, result: result === null ? null : (JSON.parse(result) as RecordedResult) };
}

export type EventRows = ReturnType<typeof createEventRows>;

export function createEventRows(database: DatabaseSync) {
  const insert = database.prepare("INSERT INTO events (tenant, turn_id, seq, at, event) VALUES (?, ?, ?, ?, ?)");
  const select = database.prepare("SELECT seq, at, event FROM events WHERE tenant = ? AND turn_id = ? AND seq > ? ORDER BY seq");
  return {
    append: ({ tenant, turnId }: { tenant: string; turnId: string }, { seq, at, event }: StoredEvent): void =>
      void insert.run(tenant, turnId, seq, at, JSON.stringify(event)),
    /** The events after number `after`, in order. */
    read: ({ tenant, turnId, after = 0 }: { tenant: string; turnId: string; after?: number | undefined }): StoredEvent[] =>
      select
        .all(tenant, turnId, after)
        .map(({ seq, at, event }) => ({ seq: Number(seq), at: String(at), event: JSON.parse(String(event)) as TurnEvent })),
  };
}

export type EvidenceRows = ReturnType<typeof createEvidenceRows>;

export function createEvidenceRows(database: DatabaseSync) {
  const insert = database.prepare(
    "INSERT INTO evidence (tenant, conversation_id, alias, turn_id, record, sha256, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const select = database.prepare(
    "SELECT alias, turn_id AS turnId, record, sha256, bytes FROM evidence WHERE tenant = ? AND conversation_id = ? ORDER BY position",
  );
  return {
    add({ tenant, conversationId }: { tenant: string; conversationId: string }, item: StoredEvidence): void {
      const { alias, turnId, record, sha256, bytes } = item;
      insert.run(tenant, conversationId, alias, turnId, record, sha256, bytes);
    },
    /** Oldest first. */
    list: (tenant: string, conversationId: string) => select.all(tenant, conversationId) as unknown as StoredEvidence[],
  };
}

export type UploadRows = ReturnType<typeof createUploadRows>;

export function createUploadRows(database: DatabaseSync) {
  const insert = database.prepare(
    "INSERT INTO uploads (tenant, conversation_id, alias, at, record, sha256, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const select = database.prepare(
    "SELECT alias, record, sha256, bytes FROM uploads WHERE tenant = ? AND conversation_id = ? ORDER BY position",
  );
  return {
    /** Adds the row and returns true, unless `hasBytes` says that the file was removed. It runs inside the transaction, where no other writer can remove the file. */
    add(place: { tenant: string; conversationId: string; at: string }, upload: UploadRow, hasBytes: () => boolean): boolean {
      const { tenant, conversationId, at, alias, record, sha256, bytes } = { ...place, ...upload };
      return inTransaction(
        database,
        () => hasBytes() && insert.run(tenant, conversationId, alias, at, record, sha256, bytes).changes === 1,
      );
    },
    list: (tenant: string, conversationId: string) => select.all(tenant, conversationId) as unknown as UploadRow[],
  };
}

export type CellRunRows = ReturnType<typeof createCellRunRows>;

export function createCellRunRows(database: DatabaseSync) {
  const insert = database.prepare("INSERT INTO cell_runs (tenant, turn_id, run) VALUES (?, ?, ?)");
  const select = database.prepare("SELECT run FROM cell_runs WHERE tenant = ? AND turn_id = ? ORDER BY position");
  return {
    add: (tenant: string, run: CellRun): void => void insert.run(tenant, run.turnId, JSON.stringify(run)),
    /** Oldest first. */
    list: (tenant: string, turnId: string) => select.all(tenant, turnId).map(({ run }) => JSON.parse(String(run)) as CellRun),
  };
}

export type LoginRows = ReturnType<typeof createLoginRows>;

/** Logins by the hash of the cookie's value. */
export function createLoginRows(database: DatabaseSync) {
  const insert = database.prepare("INSERT INTO sessions (sha256, tenant, is_operator, expires_at) VALUES (?, ?, ?, ?)");
  const select = database.prepare(
    "SELECT tenant, is_operator AS isOperator, expires_at AS expiresAt FROM sessions WHERE sha256 = ? AND expires_at > ?",
  );
  const remove = database.prepare("DELETE FROM sessions WHERE sha256 = ?");
  const removeExpired = database.prepare("DELETE FROM sessions WHERE expires_at <= ?");
  return {
    add: (sha256: string, { tenant, isOperator, expiresAt }: StoredLogin): void =>
      void insert.run(sha256, tenant, isOperator ? 1 : 0, expiresAt),
    /** The login, unless it has expired at `at`. */
    find(sha256: string, at: string): StoredLogin | null {
      const row = select.get(sha256, at) as (Omit<StoredLogin, "isOperator"> & { readonly isOperator: number }) | undefined;
      return row === undefined ? null : { ...row, isOperator: row.isOperator === 1 };
    },
    remove: (sha256: string): void => void remove.run(sha256),
    removeExpired: (at: string): void => void removeExpired.run(at),
  };
}

/** The sort key of a page's last row, as an opaque text for the client. */
function toCursor(sortKey: readonly string[]): string {
  return Buffer.from(JSON.stringify(sortKey)).toString("base64url");
}

/** The start of the list for a missing or malformed cursor. */
function fromCursor(cursor: string | undefined, start: readonly [string, string]): readonly [string, string] {
  try {
    const sortKey: unknown = JSON.parse(Buffer.from(cursor ?? "", "base64url").toString());
    return Array.isArray(sortKey) && sortKey.length === 2 ? [String(sortKey[0]), String(sortKey[1])] : start;
  } catch {
    return start;
  }
}

/**
 * Runs `work` in a transaction: commits when it returns, rolls back when it throws. `IMMEDIATE` blocks other writers, also those of other processes.
 * Joins a transaction that is already open.
 */
export function inTransaction<Value>(database: DatabaseSync, work: () => Value): Value {
  if (database.isTransaction) return work();
  database.exec("BEGIN IMMEDIATE");
  try {
    const value = work();
    database.exec("COMMIT");
    return value;
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}
