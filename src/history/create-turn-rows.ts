import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import type { StopReason, TurnResult } from "../protocol/turn-result.ts";
import type { StoredTurn, TurnRows } from "./contract.ts";
import { prepareTouch } from "./create-conversation-rows.ts";
import { fromCursor, toCursor } from "./cursor.ts";
import { inTransaction } from "./in-transaction.ts";

export function createTurnRows(database: DatabaseSync): TurnRows {
  const insert = database.prepare(
    `INSERT INTO turns (tenant, id, conversation_id, question, status, created_at, idempotency_key, request_hash)
     VALUES (:tenant, :turnId, :conversationId, :question, 'running', :at, :key, :requestHash)`,
  );
  const supersede = database.prepare("UPDATE turns SET superseded_by = ? WHERE tenant = ? AND id = ? AND superseded_by IS NULL");
  const touch = prepareTouch(database);
  const end = database.prepare(
    `UPDATE turns SET status = 'ended', ended_at = :at, stop_reason = :stopReason, answer = :answer, result = :result,
       dataset_id = :datasetId, dataset_hash = :datasetHash, dataset_bytes = :datasetBytes WHERE tenant = :tenant AND id = :turnId`,
  );
  const select = database.prepare("SELECT * FROM turns WHERE tenant = ? AND id = ?");
  const ofConversation = database.prepare(
    "SELECT * FROM turns WHERE tenant = ? AND conversation_id = ? AND superseded_by IS NULL ORDER BY position",
  );
  const list = database.prepare(
    `SELECT * FROM turns WHERE tenant = :tenant AND position < :before AND (:conversationId IS NULL OR conversation_id = :conversationId)
     AND (:status IS NULL OR status = :status) ORDER BY position DESC LIMIT :limit`,
  );
  const byKey = database.prepare("SELECT id, request_hash FROM turns WHERE tenant = ? AND idempotency_key = ?");
  const byDataset = database.prepare("SELECT dataset_hash FROM turns WHERE tenant = ? AND dataset_id = ?");

  return {
    begin({ tenant, turnId, conversationId, question, at, supersedes = [], idempotency }) {
      inTransaction(database, () => {
        const { key = null, requestHash = null } = idempotency ?? {};
        insert.run({ tenant, turnId, conversationId, question, at, key, requestHash });
        for (const id of supersedes) supersede.run(turnId, tenant, id);
        touch.run(at, tenant, conversationId);
      });
    },
    end({ tenant, turnId, result, at }) {
      const { outcome, answer, dataset, conversationId } = result;
      inTransaction(database, () => {
        end.run({
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
        touch.run(at, tenant, conversationId);
      });
    },
    get(tenant, turnId) {
      const row = select.get(tenant, turnId);
      return row === undefined ? null : toTurn(row);
    },
    list({ tenant, limit, before, conversationId = null, status = null }) {
      const [position] = fromCursor(before, [String(Number.MAX_SAFE_INTEGER), ""]);
      const rows = list.all({ tenant, limit: limit + 1, before: Number(position) || 0, conversationId, status });
      const last = rows.slice(0, limit).at(-1);
      const next = rows.length > limit && last !== undefined ? toCursor([String(last["position"]), ""]) : null;
      return { items: rows.slice(0, limit).map(toTurn), next };
    },
    ofConversation: (tenant, conversationId) => ofConversation.all(tenant, conversationId).map(toTurn),
    byIdempotencyKey(tenant, key) {
      const row = byKey.get(tenant, key);
      return row === undefined ? null : { turnId: String(row["id"]), requestHash: String(row["request_hash"]) };
    },
    byDataset(tenant, datasetId) {
      const row = byDataset.get(tenant, datasetId);
      return row === undefined ? null : { hash: String(row["dataset_hash"]) };
    },
  };
}

function toTurn(row: Record<string, SQLOutputValue>): StoredTurn {
  const text = (name: string): string | null => (row[name] === null ? null : String(row[name]));
  const result = text("result");
  return {
    tenant: String(row["tenant"]),
    turnId: String(row["id"]),
    conversationId: String(row["conversation_id"]),
    question: String(row["question"]),
    status: row["status"] === "running" ? "running" : "ended",
    createdAt: String(row["created_at"]),
    endedAt: text("ended_at"),
    stopReason: text("stop_reason") as StopReason | null,
    supersededBy: text("superseded_by"),
    result: result === null ? null : (JSON.parse(result) as TurnResult),
  };
}
