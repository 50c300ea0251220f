import type { DatabaseSync } from "node:sqlite";
import type { UploadRows } from "./contract.ts";
import { inTransaction } from "./in-transaction.ts";

export function createUploadRows(database: DatabaseSync): UploadRows {
  const insert = database.prepare(
    "INSERT INTO uploads (tenant, conversation_id, alias, at, record, sha256, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const select = database.prepare(
    "SELECT alias, record, sha256, bytes FROM uploads WHERE tenant = ? AND conversation_id = ? ORDER BY position",
  );
  return {
    add: ({ tenant, conversationId, at }, { alias, record, sha256, bytes }, isThere) =>
      inTransaction(database, () => isThere() && insert.run(tenant, conversationId, alias, at, record, sha256, bytes).changes === 1),
    list: (tenant, conversationId) =>
      select.all(tenant, conversationId).map((row) => ({
        alias: String(row["alias"]),
        record: String(row["record"]),
        sha256: String(row["sha256"]),
        bytes: Number(row["bytes"]),
      })),
  };
}
