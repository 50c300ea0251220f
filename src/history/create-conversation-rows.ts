import type { DatabaseSync, SQLOutputValue, StatementSync } from "node:sqlite";
import type { ConversationRows, StoredConversation } from "./contract.ts";
import { fromCursor, likePattern, toCursor } from "./cursor.ts";

type Row = Record<string, SQLOutputValue>;

const SNIPPET_BEFORE = 40;
const SNIPPET_CHARACTERS = 160;

export function createConversationRows(database: DatabaseSync): ConversationRows {
  const insert = database.prepare(
    "INSERT INTO conversations (tenant, id, title, created_at, updated_at) VALUES (:tenant, :id, :title, :at, :at) ON CONFLICT DO NOTHING",
  );
  const select = database.prepare("SELECT * FROM conversations WHERE tenant = ? AND id = ?");
  const rename = database.prepare("UPDATE conversations SET title = ? WHERE tenant = ? AND id = ?");
  const touch = prepareTouch(database);
  const list = database.prepare(
    `SELECT c.*, (SELECT count(*) FROM turns t WHERE t.tenant = c.tenant AND t.conversation_id = c.id AND t.superseded_by IS NULL) AS turns,
       CASE WHEN :pattern = '%' THEN NULL ELSE (
         SELECT CASE WHEN t.question LIKE :pattern ESCAPE '\\' THEN t.question ELSE t.answer END FROM turns t
         WHERE t.tenant = c.tenant AND t.conversation_id = c.id AND t.superseded_by IS NULL
           AND (t.question LIKE :pattern ESCAPE '\\' OR t.answer LIKE :pattern ESCAPE '\\')
         ORDER BY t.position LIMIT 1) END AS found
     FROM conversations c
     WHERE c.tenant = :tenant AND (c.updated_at, c.id) < (:at, :id) AND (c.title LIKE :pattern ESCAPE '\\' OR found IS NOT NULL)
     ORDER BY c.updated_at DESC, c.id DESC LIMIT :limit`,
  );

  return {
    ensure({ tenant, id, title, at }) {
      insert.run({ tenant, id, title, at });
      return toConversation(select.get(tenant, id)!);
    },
    get(tenant, id) {
      const row = select.get(tenant, id);
      return row === undefined ? null : toConversation(row);
    },
    list({ tenant, limit, before, search = "" }) {
      const [at, id] = fromCursor(before, ["\uFFFF", "\uFFFF"]);
      const rows = list.all({ tenant, at, id, limit: limit + 1, pattern: likePattern(search) });
      const items = rows.slice(0, limit).map((row) => ({
        ...toConversation(row),
        turns: Number(row["turns"]),
        snippet: typeof row["found"] === "string" ? snippetOf(row["found"], search) : null,
      }));
      const last = items.at(-1);
      return { items, next: rows.length > limit && last !== undefined ? toCursor([last.updatedAt, last.id]) : null };
    },
    rename: (tenant, id, title) => rename.run(title, tenant, id).changes === 1,
    touch: (tenant, id, at) => void touch.run(at, tenant, id),
  };
}

/** It was used. */
export function prepareTouch(database: DatabaseSync): StatementSync {
  return database.prepare("UPDATE conversations SET updated_at = max(updated_at, ?) WHERE tenant = ? AND id = ?");
}

function toConversation(row: Row): StoredConversation {
  return {
    tenant: String(row["tenant"]),
    id: String(row["id"]),
    title: String(row["title"]),
    createdAt: String(row["created_at"]),
    updatedAt: String(row["updated_at"]),
  };
}

/** What stands around the find. */
function snippetOf(text: string, search: string): string {
  const at = Math.max(0, text.toLowerCase().indexOf(search.toLowerCase()) - SNIPPET_BEFORE);
  const piece = text.slice(at, at + SNIPPET_CHARACTERS).toWellFormed();
  return `${at > 0 ? "…" : ""}${piece}${at + SNIPPET_CHARACTERS < text.length ? "…" : ""}`;
}
