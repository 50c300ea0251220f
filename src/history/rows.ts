import type { DatabaseSync } from "node:sqlite";
import { clipText, endOf } from "../text/clip-text.ts";
import type { ListedConversation, ListOptions, Page, StoredConversation, StoredEvidence, StoredLogin, UploadRow } from "./history.ts";
import { bounded } from "./stored-forms.ts";

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
       (SELECT t.stop_reason FROM turns t WHERE t.tenant = c.tenant AND t.conversation_id = c.id AND t.superseded_by IS NULL
         ORDER BY t.position DESC LIMIT 1) AS stopReason,
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

export const touchConversation = "UPDATE conversations SET updated_at = max(updated_at, ?) WHERE tenant = ? AND id = ?";

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

export type EvidenceRows = ReturnType<typeof createEvidenceRows>;

export function createEvidenceRows(database: DatabaseSync) {
  const insert = database.prepare(
    "INSERT INTO evidence (tenant, conversation_id, alias, turn_id, record, sha256, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const select = database.prepare(
    `SELECT alias, turn_id AS turnId, coalesce(${bounded("record")}, '') AS record, sha256, bytes FROM evidence
     WHERE tenant = ? AND conversation_id = ? ORDER BY position`,
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
    `SELECT alias, coalesce(${bounded("record")}, '') AS record, sha256, bytes FROM uploads WHERE tenant = ? AND conversation_id = ? ORDER BY position`,
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
export function toCursor(sortKey: readonly string[]): string {
  return Buffer.from(JSON.stringify(sortKey)).toString("base64url");
}

/** The start of the list for a missing or malformed cursor. */
export function fromCursor(cursor: string | undefined, start: readonly [string, string]): readonly [string, string] {
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
