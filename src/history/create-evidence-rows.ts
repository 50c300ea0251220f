import type { DatabaseSync } from "node:sqlite";
import type { EvidenceRows } from "./contract.ts";

export function createEvidenceRows(database: DatabaseSync): EvidenceRows {
  const insert = database.prepare(
    "INSERT INTO evidence (tenant, conversation_id, alias, turn_id, record, sha256, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const select = database.prepare(
    "SELECT alias, turn_id, record, sha256, bytes FROM evidence WHERE tenant = ? AND conversation_id = ? ORDER BY position",
  );
  return {
    add: ({ tenant, conversationId }, { alias, turnId, record, sha256, bytes }) =>
      void insert.run(tenant, conversationId, alias, turnId, record, sha256, bytes),
    list: (tenant, conversationId) =>
      select.all(tenant, conversationId).map((row) => ({
        alias: String(row["alias"]),
        turnId: row["turn_id"] === null ? null : String(row["turn_id"]),
        record: String(row["record"]),
        sha256: String(row["sha256"]),
        bytes: Number(row["bytes"]),
      })),
  };
}
