import type { DatabaseSync } from "node:sqlite";
import type { Gap } from "../protocol/turn-result.ts";
import type { StoredEvent } from "./history.ts";
import { toAbandonedResult } from "./recover-turns.ts";
import { inTransaction } from "./rows.ts";
import { bounded, isTurnState, MAX_EVENTS_BYTES, MAX_TEXT_BYTES, parseRow, UnreadableRow, writeResult } from "./stored-forms.ts";

/** A row that could not be read. Its content is kept, as it was, until it is deleted. */
export interface QuarantinedRow {
  readonly tenant: string;
  readonly conversationId: string;
  readonly turnId: string | null;
  readonly kind: QuarantinedKind;
  /** The number of an event or a run, an alias, or the name of a file. */
  readonly name: string;
  readonly reason: string;
  readonly at: string;
  readonly bytes: number;
}

/** Where rows of each kind are, and their content. All but turns name a row by one column. */
const tables = {
  result: { table: "turns", content: "result", name: "id" },
  event: { table: "events", content: "event", name: "seq" },
  "cell run": { table: "cell_runs", content: "run", name: "position" },
  evidence: { table: "evidence", content: "record", name: "alias" },
  upload: { table: "uploads", content: "record", name: "alias" },
  artifact: { table: "artifacts", content: "content_hash || '.' || type", name: "content_hash" },
  dataset: { table: "dataset_bodies", content: "sha256", name: "sha256" },
} as const;

type QuarantinedKind = keyof typeof tables;

interface Place {
  readonly tenant: string;
  readonly conversationId: string;
  readonly turnId: string | null;
}

/** What hashes and types of files look like. Anything else names no file of ours. */
const isNoHash = (column: string): string => `(length(${column}) <> 64 OR ${column} GLOB '*[^0-9a-f]*')`;
const eventByName = "turn_id = :turnId AND seq = CAST(:name AS INTEGER)";
const CODE = "entry_unreadable";

/** Puts rows that cannot be read aside, so that they harm neither their conversation nor the server. Their turn gets a gap that says so. */
export class Quarantine {
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  count(): number {
    return Number(this.#database.prepare("SELECT count(*) AS rows FROM quarantine").get()!["rows"]);
  }

  /** Oldest first. */
  list(): QuarantinedRow[] {
    const columns = "tenant, conversation_id AS conversationId, turn_id AS turnId, kind, name, reason, at, octet_length(content) AS bytes";
    return this.#database.prepare(`SELECT ${columns} FROM quarantine ORDER BY position`).all() as unknown as QuarantinedRow[];
  }

  /** Deletes the contents for good. Gaps in turns stay. Returns how many there were. */
  clear(): number {
    return Number(this.#database.prepare("DELETE FROM quarantine").run().changes);
  }

  /** Finds and puts aside everything that cannot be read, a turn or the evidence of a conversation at a time. */
  *isolateAll(): Generator<void> {
    const turns = this.#database.prepare("SELECT tenant, id FROM turns").all();
    for (const { tenant, id } of turns) yield this.isolateTurn(String(tenant), String(id));
    const conversations = this.#database.prepare(
      "SELECT tenant, conversation_id AS id FROM evidence UNION SELECT tenant, conversation_id FROM uploads",
    );
    for (const { tenant, id } of conversations.all()) yield this.#isolateRecords(String(tenant), String(id));
  }

  #isolateRecords(tenant: string, conversationId: string): void {
    for (const kind of ["evidence", "upload"] as const) {
      const { table, content } = tables[kind];
      const bad = this.#database.prepare(
        `SELECT alias, CASE WHEN ${isNoHash("sha256")} THEN 'has no hash of its content' ELSE 'is not valid JSON' END AS reason FROM ${table}
         WHERE tenant = ? AND conversation_id = ? AND (${isNoHash("sha256")} OR octet_length(${content}) > ${MAX_TEXT_BYTES} OR NOT json_valid(${content}))`,
      );
      for (const { alias, reason } of bad.all(tenant, conversationId))
        this.putAside(kind, { tenant, conversationId, name: String(alias), reason: String(reason) });
    }
  }

  /** Puts aside evidence or an upload whose record the caller could not use. */
  putAside(
    kind: "evidence" | "upload",
    { name, reason, ...of }: { tenant: string; conversationId: string; name: string; reason: string },
  ): void {
    const { tenant, conversationId } = of;
    inTransaction(this.#database, () => {
      const ofTurn =
        kind === "evidence" ? "SELECT turn_id AS id FROM evidence WHERE tenant = ? AND conversation_id = ? AND alias = ?" : null;
      const own = ofTurn === null ? undefined : this.#database.prepare(ofTurn).get(tenant, conversationId, name);
      const latest =
        "SELECT id FROM turns WHERE tenant = ? AND conversation_id = ? AND superseded_by IS NULL ORDER BY position DESC LIMIT 1";
      const turn = own?.["id"] == null ? this.#database.prepare(latest).get(tenant, conversationId) : own;
      const turnId = turn === undefined ? null : String(turn["id"]);
      this.#move(kind, { tenant, conversationId, turnId }, { name, reason, where: "conversation_id = :conversationId AND alias = :name" });
      if (turnId !== null) this.#addGap({ tenant, conversationId, turnId });
    });
  }

  /** Finds and puts aside what cannot be read in a turn. A turn that has ended then has a result that can be read, with a gap. */
  isolateTurn(tenant: string, turnId: string): void {
    inTransaction(this.#database, () => {
      const turn = this.#database.prepare("SELECT conversation_id AS id FROM turns WHERE tenant = ? AND id = ?").get(tenant, turnId);
      if (turn === undefined) return;
      const place = { tenant, conversationId: String(turn["id"]), turnId };
      const moved = [
        this.#isolateResult(place),
        this.#isolateLargest(place),
        this.#isolateTexts("event", place),
        this.#isolateTexts("cell run", place),
        this.#isolateReferences(place),
      ];
      if (moved.some((any) => any)) this.#addGap(place);
    });
  }

  /** What a result says about the entries of its turn that were put aside; null if there are none. */
  gapOf(tenant: string, turnId: string): Gap | null {
    const sql = "SELECT kind, count(*) AS count FROM quarantine WHERE tenant = ? AND turn_id = ? GROUP BY kind ORDER BY kind";
    const kinds = this.#database.prepare(sql).all(tenant, turnId);
    const entries = kinds.map(({ kind, count }) => (Number(count) === 1 ? String(kind) : `${String(count)} × ${String(kind)}`)).join(", ");
    if (kinds.length === 0) return null;
    const detail = `Stored entries of this turn could not be read and were put aside (${entries}), so it is shown without them.`;
    return { code: CODE, severity: "major", detail };
  }

  #isolateResult(place: Place & { readonly turnId: string }): boolean {
    const sql = `SELECT status, stop_reason AS stopReason, result IS NULL AS isMissing, ${bounded("result")} AS result FROM turns WHERE tenant = ? AND id = ?`;
    const row = this.#database.prepare(sql).get(place.tenant, place.turnId)!;
    const hasState = isTurnState(row as { status: unknown; stopReason: unknown });
    const reason = row["isMissing"] === 1 ? null : whyUnreadable("result", row["result"]);
    if (hasState && reason === null) return false;
    this.#move("result", place, { name: place.turnId, reason: reason ?? "has an unknown status", where: "id = :turnId" });
    return true;
  }

  /** Puts the largest events aside until the others can be read together. */
  #isolateLargest(place: Place & { readonly turnId: string }): boolean {
    const bySize = "SELECT seq, octet_length(event) AS bytes FROM events WHERE tenant = ? AND turn_id = ? ORDER BY bytes DESC";
    const events = this.#database.prepare(bySize).all(place.tenant, place.turnId);
    let total = events.reduce((sum, { bytes }) => sum + Number(bytes), 0);
    let count = 0;
    for (; total > MAX_EVENTS_BYTES; count += 1) {
      const { seq, bytes } = events[count]!;
      const reason = `is one of the events of a turn with more than ${MAX_EVENTS_BYTES} bytes`;
      this.#move("event", place, { name: String(seq), reason, where: eventByName });
      total -= Number(bytes);
    }
    return count > 0;
  }

  #isolateTexts(kind: "event" | "cell run", place: Place & { readonly turnId: string }): boolean {
    const { table, content, name } = tables[kind];
    const select = this.#database.prepare(
      `SELECT ${name} AS name, ${bounded(content)} AS content FROM ${table} WHERE tenant = ? AND turn_id = ? ORDER BY ${name}`,
    );
    const bad: { name: string; reason: string }[] = [];
    for (const row of select.iterate(place.tenant, place.turnId)) {
      const reason = whyUnreadable(kind === "event" ? "event" : "cellRun", row["content"]);
      if (reason !== null) bad.push({ name: String(row["name"]), reason });
    }
    for (const one of bad) this.#move(kind, place, { ...one, where: `turn_id = :turnId AND ${name} = CAST(:name AS INTEGER)` });
    return bad.length > 0;
  }

  #isolateReferences(place: Place): boolean {
    const isBad = { artifact: `(${isNoHash("content_hash")} OR type NOT IN ('png', 'json'))`, dataset: isNoHash("sha256") };
    const counts = (["artifact", "dataset"] as const).map((kind) => {
      const { table, name } = tables[kind];
      const bad = this.#database.prepare(
        `SELECT DISTINCT ${name} AS name FROM ${table} WHERE tenant = ? AND turn_id = ? AND ${isBad[kind]}`,
      );
      const names = bad.all(place.tenant, place.turnId).map((row) => String(row["name"]));
      for (const one of names) {
        const where = `turn_id = :turnId AND ${name} = :name AND ${isBad[kind]}`;
        this.#move(kind, place, { name: one, reason: "names no file", where });
      }
      return names.length;
    });
    return counts.some((count) => count > 0);
  }

  /** Moves a row as it is, without reading its content. Of a turn, only the result is moved. */
  #move(kind: QuarantinedKind, place: Place, { name, reason, where }: { name: string; reason: string; where: string }): void {
    const { table, content } = tables[kind];
    const values = { tenant: place.tenant, name, conversationId: place.conversationId, turnId: place.turnId };
    const used = (sql: string, all: Record<string, string | null>): Record<string, string | null> =>
      Object.fromEntries(Object.entries(all).filter(([key]) => new RegExp(`:${RegExp.escape(key)}\\b`).test(sql)));
    const insert = `INSERT INTO quarantine (tenant, conversation_id, turn_id, kind, name, reason, at, content)
      SELECT :tenant, :conversationId, :turnId, :kind, :name, :reason, :at, ${content} FROM ${table} WHERE tenant = :tenant AND ${where}`;
    this.#database.prepare(insert).run({ ...values, kind, reason, at: new Date().toISOString() });
    const remove =
      kind === "result"
        ? `UPDATE turns SET result = NULL, status = CASE status WHEN 'running' THEN 'running' ELSE 'ended' END, stop_reason = NULL WHERE tenant = :tenant AND ${where}`
        : `DELETE FROM ${table} WHERE tenant = :tenant AND ${where}`;
    this.#database.prepare(remove).run(used(remove, values));
  }

  /** Writes the result of a turn that has ended again, with a gap for everything that was put aside, and its last event. */
  #addGap({ tenant, conversationId, turnId }: Place & { readonly turnId: string }): void {
    const select = `SELECT status, ended_at AS endedAt, result FROM turns WHERE tenant = ? AND id = ?`;
    const turn = this.#database.prepare(select).get(tenant, turnId)!;
    if (turn["status"] !== "ended") return; // `recoverTurns` ends it
    const at = String(turn["endedAt"] ?? new Date().toISOString());
    const events = this.#events(tenant, turnId);
    const gap = this.gapOf(tenant, turnId)!;
    const known =
      turn["result"] === null
        ? toAbandonedResult(events, { turnId, conversationId, code: CODE, detail: gap.detail })
        : parseRow("result", turn["result"]);
    const gaps = [...known.gaps.filter(({ code }) => code !== CODE), gap];
    const result = writeResult({ ...known, gaps });
    this.#database
      .prepare("UPDATE turns SET result = ?, answer = result ->> 'answer', stop_reason = ?, ended_at = ? WHERE tenant = ? AND id = ?")
      .run(result, known.outcome.stopReason, at, tenant, turnId);
    const last = events.at(-1);
    const seq = last?.event.type === "turn-end" ? last.seq : (last?.seq ?? 0) + 1;
    this.#database
      .prepare(
        "INSERT INTO events (tenant, turn_id, seq, at, event) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET event = excluded.event",
      )
      .run(tenant, turnId, seq, at, `{"type":"turn-end","result":${result}}`);
  }

  #events(tenant: string, turnId: string): StoredEvent[] {
    const rows = this.#database
      .prepare("SELECT seq, at, event FROM events WHERE tenant = ? AND turn_id = ? ORDER BY seq")
      .all(tenant, turnId);
    return rows.map(({ seq, at, event }) => ({ seq: Number(seq), at: String(at), event: parseRow("event", event) }));
  }
}

function whyUnreadable(form: "event" | "result" | "cellRun", text: unknown): string | null {
  try {
    parseRow(form, text);
    return null;
  } catch (error) {
    if (error instanceof UnreadableRow) return error.message;
    throw error;
  }
}

/** How many rows there are and what to do; null if there are none. */
export function describeQuarantined(rows: number): string | null {
  if (rows === 0) return null;
  const were = rows === 1 ? "1 stored entry could not be read and was" : `${rows} stored entries could not be read and were`;
  return `${were} put aside; conversations work without them. To see them: sluice quarantine. To delete them: sluice quarantine --delete.`;
}
