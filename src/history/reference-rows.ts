import type { DatabaseSync } from "node:sqlite";
import type { Files, Removable, StoredArtifact } from "./history.ts";
import { inTransaction } from "./create-rows.ts";

/** Which files the rows refer to, and the removal of rows with the files that only they refer to. */
export class ReferenceRows {
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Before the bytes are kept: what is referred to is never removed. */
  addArtifact({ tenant, turnId, contentHash, type, bytes }: StoredArtifact & { readonly turnId: string }): void {
    const sql = "INSERT INTO artifacts (tenant, turn_id, content_hash, type, bytes) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
    this.#run(sql, tenant, turnId, contentHash, type, bytes);
  }

  /** An output that the dataset of a turn holds: evidence, or an upload. */
  addBody({ tenant, turnId, sha256 }: { readonly tenant: string; readonly turnId: string; readonly sha256: string }): void {
    this.#run("INSERT INTO dataset_bodies (tenant, turn_id, sha256) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", tenant, turnId, sha256);
  }

  /** One that no turn made, of a client of `/mcp`. Published again it counts as new. */
  addPublished({ tenant, contentHash, type, bytes, at }: StoredArtifact & { readonly at: string }): void {
    const sql = `INSERT INTO published (tenant, content_hash, type, bytes, published_at) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET published_at = excluded.published_at`;
    this.#run(sql, tenant, contentHash, type, bytes, at);
  }

  /** Everything that is referred to. */
  inUse(tenant: string): Files {
    const both = (column: string, one: string, other: string): string[] =>
      this.#texts(`SELECT ${column} FROM ${one} WHERE tenant = ? UNION SELECT ${column} FROM ${other} WHERE tenant = ?`, tenant, tenant);
    return {
      artifacts: both("content_hash || '.' || type", "artifacts", "published"),
      datasets: this.#texts("SELECT dataset_hash FROM turns WHERE tenant = ? AND dataset_hash IS NOT NULL", tenant),
      evidence: both("sha256", "evidence", "dataset_bodies"),
      uploads: both("sha256", "uploads", "dataset_bodies"),
    };
  }

  /** Not used since then, oldest first, without conversations that run. */
  unusedSince(tenant: string, at: string): Removable[] {
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

  remove(tenant: string, what: Removable, remove: (files: Files) => void): void {
    if (what.kind === "conversation") return void this.deleteConversation(tenant, what.id, remove);
    inTransaction(this.#database, () => {
      this.#run("DELETE FROM published WHERE tenant = ? AND content_hash = ? AND type = ?", tenant, what.contentHash, what.type);
      remove(this.#unreferenced(tenant, { artifacts: [`${what.contentHash}.${what.type}`], datasets: [], evidence: [], uploads: [] }));
    });
  }

  /**
   * Removes a turn with what only it uses. Evidence that later turns of the conversation name stays. `remove` deletes the files that nothing refers to any
   * more, while nobody else can begin to refer to them; if it throws, nothing is removed.
   */
  deleteTurn(tenant: string, turnId: string, remove: (files: Files) => void): boolean {
    return inTransaction(this.#database, () => {
      if (!this.#isThere("SELECT 1 FROM turns WHERE tenant = ? AND id = ?", tenant, turnId)) return false;
      const before = this.#filesOf(tenant, turnId);
      this.#removeEvidenceOf(tenant, turnId);
      this.#removeTurnRows(tenant, turnId);
      remove(this.#unreferenced(tenant, before));
      return true;
    });
  }

  deleteConversation(tenant: string, id: string, remove: (files: Files) => void): boolean {
    return inTransaction(this.#database, () => {
      const turns = this.#texts("SELECT id FROM turns WHERE tenant = ? AND conversation_id = ?", tenant, id);
      const each = turns.map((turnId) => this.#filesOf(tenant, turnId));
      const ofConversation = (table: string): string[] =>
        this.#texts(`SELECT DISTINCT sha256 FROM ${table} WHERE tenant = ? AND conversation_id = ?`, tenant, id);
      const before: Files = {
        artifacts: each.flatMap(({ artifacts }) => artifacts),
        datasets: each.flatMap(({ datasets }) => datasets),
        evidence: [...each.flatMap(({ evidence }) => evidence), ...ofConversation("evidence")],
        uploads: [...each.flatMap(({ uploads }) => uploads), ...ofConversation("uploads")],
      };
      for (const turnId of turns) this.#removeTurnRows(tenant, turnId);
      this.#run("DELETE FROM evidence WHERE tenant = ? AND conversation_id = ?", tenant, id);
      this.#run("DELETE FROM uploads WHERE tenant = ? AND conversation_id = ?", tenant, id);
      const removed = this.#run("DELETE FROM conversations WHERE tenant = ? AND id = ?", tenant, id);
      remove(this.#unreferenced(tenant, before));
      return removed > 0 || turns.length > 0;
    });
  }

  /** What the rows of one turn refer to. */
  #filesOf(tenant: string, turnId: string): Files {
    const bodies = this.#texts("SELECT sha256 FROM dataset_bodies WHERE tenant = ? AND turn_id = ?", tenant, turnId);
    return {
      artifacts: this.#texts("SELECT content_hash || '.' || type FROM artifacts WHERE tenant = ? AND turn_id = ?", tenant, turnId),
      datasets: this.#texts("SELECT dataset_hash FROM turns WHERE tenant = ? AND id = ? AND dataset_hash IS NOT NULL", tenant, turnId),
      evidence: [...this.#texts("SELECT DISTINCT sha256 FROM evidence WHERE tenant = ? AND turn_id = ?", tenant, turnId), ...bodies],
      uploads: bodies,
    };
  }

  /** Those of them that no row refers to any more. */
  #unreferenced(tenant: string, { artifacts, datasets, evidence, uploads }: Files): Files {
    const isFree = (tables: string, test: string, ...values: string[]): boolean =>
      tables.split(" ").every((table) => !this.#isThere(`SELECT 1 FROM ${table} WHERE tenant = ? AND ${test}`, tenant, ...values));
    return {
      artifacts: artifacts.filter((name) => isFree("artifacts published", "content_hash = ? AND type = ?", ...name.split("."))),
      datasets: datasets.filter((hash) => isFree("turns", "dataset_hash = ?", hash)),
      evidence: evidence.filter((hash) => isFree("evidence dataset_bodies", "sha256 = ?", hash)),
      uploads: uploads.filter((hash) => isFree("uploads dataset_bodies", "sha256 = ?", hash)),
    };
  }

  #removeTurnRows(tenant: string, turnId: string): void {
    this.#run("DELETE FROM events WHERE tenant = ? AND turn_id = ?", tenant, turnId);
    this.#run("DELETE FROM cell_runs WHERE tenant = ? AND turn_id = ?", tenant, turnId);
    this.#run("DELETE FROM artifacts WHERE tenant = ? AND turn_id = ?", tenant, turnId);
    this.#run("DELETE FROM dataset_bodies WHERE tenant = ? AND turn_id = ?", tenant, turnId);
    this.#run("DELETE FROM turns WHERE tenant = ? AND id = ?", tenant, turnId);
  }

  /** Evidence that a later turn of the conversation speaks of is not only this turn's. */
  #removeEvidenceOf(tenant: string, turnId: string): void {
    const named = `SELECT 1 FROM turns own JOIN turns later ON later.tenant = own.tenant AND later.conversation_id = own.conversation_id
      AND later.position > own.position JOIN events e ON e.tenant = later.tenant AND e.turn_id = later.id
      WHERE own.tenant = evidence.tenant AND own.id = evidence.turn_id AND instr(e.event, evidence.alias) > 0`;
    this.#run(`UPDATE evidence SET turn_id = NULL WHERE tenant = ? AND turn_id = ? AND EXISTS (${named})`, tenant, turnId);
    this.#run("DELETE FROM evidence WHERE tenant = ? AND turn_id = ?", tenant, turnId);
  }

  #texts(sql: string, ...values: string[]): string[] {
    const rows = this.#database.prepare(sql).all(...values);
    return rows.map((row) => String(Object.values(row)[0]));
  }

  #isThere(sql: string, ...values: string[]): boolean {
    return this.#database.prepare(sql).get(...values) !== undefined;
  }

  #run(sql: string, ...values: (string | number)[]): number {
    return Number(this.#database.prepare(sql).run(...values).changes);
  }
}
