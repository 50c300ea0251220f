import type { DatabaseSync } from "node:sqlite";
import type { ArtifactRow, FileNames, PrunableItem } from "./history.ts";
import { inTransaction } from "./rows.ts";

/** Tracks which files the rows refer to, and removes rows together with the files that nothing else refers to. */
export class ReferenceRows {
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Call it before the bytes are stored: a file with a row is never pruned. */
  addArtifact({ tenant, turnId, contentHash, type, bytes }: ArtifactRow & { readonly turnId: string }): void {
    const sql = "INSERT INTO artifacts (tenant, turn_id, content_hash, type, bytes) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
    this.#run(sql, tenant, turnId, contentHash, type, bytes);
  }

  /** An evidence or upload file that the dataset of a turn contains. */
  addDatasetBody({ tenant, turnId, sha256 }: { readonly tenant: string; readonly turnId: string; readonly sha256: string }): void {
    this.#run("INSERT INTO dataset_bodies (tenant, turn_id, sha256) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", tenant, turnId, sha256);
  }

  /** An artifact that an MCP client published outside of a turn. Publishing it again resets its age. */
  addPublished({ tenant, contentHash, type, bytes, at }: ArtifactRow & { readonly at: string }): void {
    const sql = `INSERT INTO published (tenant, content_hash, type, bytes, published_at) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET published_at = excluded.published_at`;
    this.#run(sql, tenant, contentHash, type, bytes, at);
  }

  /** All files that rows of the tenant refer to. */
  filesInUse(tenant: string): FileNames {
    const union = (column: string, table: string, otherTable: string): string[] =>
      this.#texts(
        `SELECT ${column} FROM ${table} WHERE tenant = ? UNION SELECT ${column} FROM ${otherTable} WHERE tenant = ?`,
        tenant,
        tenant,
      );
    return {
      artifacts: union("content_hash || '.' || type", "artifacts", "published"),
      datasets: this.#texts("SELECT dataset_hash FROM turns WHERE tenant = ? AND dataset_hash IS NOT NULL", tenant),
      evidence: union("sha256", "evidence", "dataset_bodies"),
      uploads: union("sha256", "uploads", "dataset_bodies"),
    };
  }

  /** Items last used before `at`, oldest first. Conversations with a running turn are left out. */
  unusedSince(tenant: string, at: string): PrunableItem[] {
    const unused = this.#database.prepare(
      `SELECT 'conversation' AS kind, id AS name, '' AS type, updated_at AS at FROM conversations c WHERE tenant = :tenant AND updated_at < :at
         AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.tenant = c.tenant AND t.conversation_id = c.id AND t.status = 'running')
       UNION ALL
       SELECT 'artifact', content_hash, type, published_at FROM published WHERE tenant = :tenant AND published_at < :at
       ORDER BY at, name`,
    );
    return unused
      .all({ tenant, at })
      .map(({ kind, name, type }) =>
        kind === "conversation"
          ? { kind: "conversation", id: String(name) }
          : { kind: "artifact", contentHash: String(name), type: String(type) },
      );
  }

  /** Deletes a conversation or a published artifact. For `removeFiles` see `deleteTurn`. */
  deleteItem(tenant: string, item: PrunableItem, removeFiles: (files: FileNames) => void): void {
    if (item.kind === "conversation") return this.deleteConversation(tenant, item.id, removeFiles);
    inTransaction(this.#database, () => {
      this.#run("DELETE FROM published WHERE tenant = ? AND content_hash = ? AND type = ?", tenant, item.contentHash, item.type);
      const artifacts = [`${item.contentHash}.${item.type}`];
      removeFiles(this.#unreferenced(tenant, { artifacts, datasets: [], evidence: [], uploads: [] }));
    });
  }

  /**
   * Deletes a turn with everything that only it uses, if it exists. Evidence that a later turn of the conversation mentions stays.
   * `removeFiles` gets the files that no row refers to any more. It runs inside the transaction, so no new reference can appear; if it throws, nothing is deleted.
   */
  deleteTurn(tenant: string, turnId: string, removeFiles: (files: FileNames) => void): void {
    inTransaction(this.#database, () => {
      const files = this.#filesOfTurn(tenant, turnId);
      this.#deleteEvidenceOfTurn(tenant, turnId);
      this.#deleteTurnRows(tenant, turnId);
      removeFiles(this.#unreferenced(tenant, files));
    });
  }

  /** Deletes a conversation with its turns, as `deleteTurn` does. */
  deleteConversation(tenant: string, id: string, removeFiles: (files: FileNames) => void): void {
    inTransaction(this.#database, () => {
      const turnIds = this.#texts("SELECT id FROM turns WHERE tenant = ? AND conversation_id = ?", tenant, id);
      const files = this.#filesOfConversation(tenant, id, turnIds);
      for (const turnId of turnIds) this.#deleteTurnRows(tenant, turnId);
      this.#run("DELETE FROM evidence WHERE tenant = ? AND conversation_id = ?", tenant, id);
      this.#run("DELETE FROM uploads WHERE tenant = ? AND conversation_id = ?", tenant, id);
      this.#run("DELETE FROM quarantine WHERE tenant = ? AND conversation_id = ?", tenant, id);
      this.#run("DELETE FROM conversations WHERE tenant = ? AND id = ?", tenant, id);
      removeFiles(this.#unreferenced(tenant, files));
    });
  }

  /** Deletes what tools and cells of a conversation returned. Uploaded files and recorded answers stay. For `removeFiles` see `deleteTurn`. */
  deleteEvidence(tenant: string, conversationId: string, removeFiles: (files: FileNames) => void): void {
    inTransaction(this.#database, () => {
      const evidence = this.#texts("SELECT DISTINCT sha256 FROM evidence WHERE tenant = ? AND conversation_id = ?", tenant, conversationId);
      this.#run("DELETE FROM evidence WHERE tenant = ? AND conversation_id = ?", tenant, conversationId);
      removeFiles(this.#unreferenced(tenant, { artifacts: [], datasets: [], evidence, uploads: [] }));
    });
  }

  #filesOfConversation(tenant: string, id: string, turnIds: readonly string[]): FileNames {
    const ofTurns = turnIds.map((turnId) => this.#filesOfTurn(tenant, turnId));
    const hashes = (table: "evidence" | "uploads"): string[] =>
      this.#texts(`SELECT DISTINCT sha256 FROM ${table} WHERE tenant = ? AND conversation_id = ?`, tenant, id);
    return {
      artifacts: ofTurns.flatMap(({ artifacts }) => artifacts),
      datasets: ofTurns.flatMap(({ datasets }) => datasets),
      evidence: [...ofTurns.flatMap(({ evidence }) => evidence), ...hashes("evidence")],
      uploads: [...ofTurns.flatMap(({ uploads }) => uploads), ...hashes("uploads")],
    };
  }

  #filesOfTurn(tenant: string, turnId: string): FileNames {
    const bodies = this.#texts("SELECT sha256 FROM dataset_bodies WHERE tenant = ? AND turn_id = ?", tenant, turnId);
    return {
      artifacts: this.#texts("SELECT content_hash || '.' || type FROM artifacts WHERE tenant = ? AND turn_id = ?", tenant, turnId),
      datasets: this.#texts("SELECT dataset_hash FROM turns WHERE tenant = ? AND id = ? AND dataset_hash IS NOT NULL", tenant, turnId),
      evidence: [...this.#texts("SELECT DISTINCT sha256 FROM evidence WHERE tenant = ? AND turn_id = ?", tenant, turnId), ...bodies],
      uploads: bodies,
    };
  }

  /** The given files without those that a row still refers to. */
  #unreferenced(tenant: string, { artifacts, datasets, evidence, uploads }: FileNames): FileNames {
    const isUnused = (tables: readonly string[], condition: string, ...values: string[]): boolean =>
      tables.every((table) => !this.#exists(`SELECT 1 FROM ${table} WHERE tenant = ? AND ${condition}`, tenant, ...values));
    return {
      artifacts: artifacts.filter((name) => isUnused(["artifacts", "published"], "content_hash = ? AND type = ?", ...name.split("."))),
      datasets: datasets.filter((hash) => isUnused(["turns"], "dataset_hash = ?", hash)),
      evidence: evidence.filter((hash) => isUnused(["evidence", "dataset_bodies"], "sha256 = ?", hash)),
      uploads: uploads.filter((hash) => isUnused(["uploads", "dataset_bodies"], "sha256 = ?", hash)),
    };
  }

  #deleteTurnRows(tenant: string, turnId: string): void {
    for (const table of ["events", "cell_runs", "artifacts", "dataset_bodies", "quarantine"])
      this.#run(`DELETE FROM ${table} WHERE tenant = ? AND turn_id = ?`, tenant, turnId);
    this.#run("DELETE FROM turns WHERE tenant = ? AND id = ?", tenant, turnId);
  }

  /** Evidence whose alias occurs in an event of a later turn stays, detached from this turn. */
  #deleteEvidenceOfTurn(tenant: string, turnId: string): void {
    const mentioned = `SELECT 1 FROM turns own JOIN turns later ON later.tenant = own.tenant AND later.conversation_id = own.conversation_id
      AND later.position > own.position JOIN events e ON e.tenant = later.tenant AND e.turn_id = later.id
      WHERE own.tenant = evidence.tenant AND own.id = evidence.turn_id AND instr(e.event, evidence.alias) > 0`;
    this.#run(`UPDATE evidence SET turn_id = NULL WHERE tenant = ? AND turn_id = ? AND EXISTS (${mentioned})`, tenant, turnId);
    this.#run("DELETE FROM evidence WHERE tenant = ? AND turn_id = ?", tenant, turnId);
  }

  #texts(sql: string, ...values: string[]): string[] {
    const rows = this.#database.prepare(sql).all(...values);
    return rows.map((row) => String(Object.values(row)[0]));
  }

  #exists(sql: string, ...values: string[]): boolean {
    return this.#database.prepare(sql).get(...values) !== undefined;
  }

  #run(sql: string, ...values: (string | number)[]): void {
    this.#database.prepare(sql).run(...values);
  }
}
