import type { DatabaseSync } from "node:sqlite";
import type { Files, ReferenceRows } from "./contract.ts";
import { inTransaction } from "./in-transaction.ts";

export function createReferenceRows(database: DatabaseSync): ReferenceRows {
  const texts = (sql: string, ...values: string[]): string[] =>
    database
      .prepare(sql)
      .all(...values)
      .map((row) => String(Object.values(row)[0]));
  const isThere = (sql: string, ...values: string[]): boolean => database.prepare(sql).get(...values) !== undefined;
  const run = (sql: string, ...values: string[]): number => Number(database.prepare(sql).run(...values).changes);
  const addArtifact = database.prepare(
    "INSERT INTO artifacts (tenant, turn_id, content_hash, type, bytes) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
  );

  /** What the rows of one turn refer to. */
  function filesOf(tenant: string, turnId: string): Files {
    return {
      artifacts: database
        .prepare("SELECT content_hash, type FROM artifacts WHERE tenant = ? AND turn_id = ?")
        .all(tenant, turnId)
        .map((row) => ({ contentHash: String(row["content_hash"]), type: String(row["type"]) })),
      datasets: texts("SELECT dataset_hash FROM turns WHERE tenant = ? AND id = ? AND dataset_hash IS NOT NULL", tenant, turnId),
      evidence: texts("SELECT DISTINCT sha256 FROM evidence WHERE tenant = ? AND turn_id = ?", tenant, turnId),
      uploads: [],
    };
  }

  /** Those of them that no row refers to any more. */
  function unreferenced(tenant: string, { artifacts, datasets, evidence, uploads }: Files): Files {
    return {
      artifacts: artifacts.filter(
        ({ contentHash, type }) =>
          !isThere("SELECT 1 FROM artifacts WHERE tenant = ? AND content_hash = ? AND type = ?", tenant, contentHash, type),
      ),
      datasets: datasets.filter((hash) => !isThere("SELECT 1 FROM turns WHERE tenant = ? AND dataset_hash = ?", tenant, hash)),
      evidence: evidence.filter((hash) => !isThere("SELECT 1 FROM evidence WHERE tenant = ? AND sha256 = ?", tenant, hash)),
      uploads: uploads.filter((hash) => !isThere("SELECT 1 FROM uploads WHERE tenant = ? AND sha256 = ?", tenant, hash)),
    };
  }

  function removeTurnRows(tenant: string, turnId: string): void {
    run("DELETE FROM events WHERE tenant = ? AND turn_id = ?", tenant, turnId);
    run("DELETE FROM cell_runs WHERE tenant = ? AND turn_id = ?", tenant, turnId);
    run("DELETE FROM artifacts WHERE tenant = ? AND turn_id = ?", tenant, turnId);
    run("DELETE FROM turns WHERE tenant = ? AND id = ?", tenant, turnId);
  }

  /** Evidence that a later turn of the conversation speaks of is not only this turn's. */
  function removeEvidenceOf(tenant: string, turnId: string): void {
    const named = `SELECT 1 FROM turns own JOIN turns later ON later.tenant = own.tenant AND later.conversation_id = own.conversation_id
      AND later.position > own.position JOIN events e ON e.tenant = later.tenant AND e.turn_id = later.id
      WHERE own.tenant = evidence.tenant AND own.id = evidence.turn_id AND instr(e.event, evidence.alias) > 0`;
    run(`UPDATE evidence SET turn_id = NULL WHERE tenant = ? AND turn_id = ? AND EXISTS (${named})`, tenant, turnId);
    run("DELETE FROM evidence WHERE tenant = ? AND turn_id = ?", tenant, turnId);
  }

  return {
    addArtifact: ({ tenant, turnId, contentHash, type, bytes }) => void addArtifact.run(tenant, turnId, contentHash, type, bytes),
    inUse: (tenant) => ({
      artifacts: database
        .prepare("SELECT DISTINCT content_hash, type FROM artifacts WHERE tenant = ?")
        .all(tenant)
        .map((row) => ({ contentHash: String(row["content_hash"]), type: String(row["type"]) })),
      datasets: texts("SELECT dataset_hash FROM turns WHERE tenant = ? AND dataset_hash IS NOT NULL", tenant),
      evidence: texts("SELECT DISTINCT sha256 FROM evidence WHERE tenant = ?", tenant),
      uploads: texts("SELECT DISTINCT sha256 FROM uploads WHERE tenant = ?", tenant),
    }),
    usedBytes(tenant) {
      const distinct = ["artifacts", "evidence", "uploads"].map((table) => {
        const key = table === "artifacts" ? "content_hash" : "sha256";
        return `SELECT coalesce(sum(bytes), 0) AS bytes FROM (SELECT DISTINCT ${key}, bytes FROM ${table} WHERE tenant = :tenant)`;
      });
      const datasets = "SELECT coalesce(sum(dataset_bytes), 0) AS bytes FROM turns WHERE tenant = :tenant";
      const sum = database.prepare(`SELECT sum(bytes) AS bytes FROM (${[...distinct, datasets].join(" UNION ALL ")})`).get({ tenant });
      return Number(sum?.["bytes"] ?? 0);
    },
    deleteTurn: (tenant, turnId, remove) =>
      inTransaction(database, () => {
        if (!isThere("SELECT 1 FROM turns WHERE tenant = ? AND id = ?", tenant, turnId)) return false;
        const before = filesOf(tenant, turnId);
        removeEvidenceOf(tenant, turnId);
        removeTurnRows(tenant, turnId);
        remove(unreferenced(tenant, before));
        return true;
      }),
    deleteConversation: (tenant, id, remove) =>
      inTransaction(database, () => {
        const turns = texts("SELECT id FROM turns WHERE tenant = ? AND conversation_id = ?", tenant, id);
        const each = turns.map((turnId) => filesOf(tenant, turnId));
        const before: Files = {
          artifacts: each.flatMap(({ artifacts }) => artifacts),
          datasets: each.flatMap(({ datasets }) => datasets),
          evidence: texts("SELECT DISTINCT sha256 FROM evidence WHERE tenant = ? AND conversation_id = ?", tenant, id),
          uploads: texts("SELECT DISTINCT sha256 FROM uploads WHERE tenant = ? AND conversation_id = ?", tenant, id),
        };
        for (const turnId of turns) removeTurnRows(tenant, turnId);
        run("DELETE FROM evidence WHERE tenant = ? AND conversation_id = ?", tenant, id);
        run("DELETE FROM uploads WHERE tenant = ? AND conversation_id = ?", tenant, id);
        const removed = run("DELETE FROM conversations WHERE tenant = ? AND id = ?", tenant, id);
        remove(unreferenced(tenant, before));
        return removed > 0 || turns.length > 0;
      }),
  };
}
