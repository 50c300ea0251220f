import type { DatabaseSync } from "node:sqlite";
import type { CellRun } from "../protocol/http-cells.ts";
import type { TurnStatus } from "../protocol/http-turns.ts";
import type { RecordedResult } from "../protocol/turn-result.ts";
import type { ListOptions, NewTurn, Page, StoredEvent, StoredTurn } from "./history.ts";
import { fromCursor, inTransaction, toCursor, touchConversation } from "./rows.ts";
import { bounded, isTurnState, MAX_EVENTS_BYTES, parseRow, UnreadableRow, writeResult } from "./stored-forms.ts";

/** `result` is also null if it is too long to be read. */
type TurnRow = Omit<StoredTurn, "result"> & { readonly position: number; readonly isResultMissing: 0 | 1; readonly result: string | null };

export type TurnRows = ReturnType<typeof createTurnRows>;

/** `isolate` puts aside what cannot be read in a turn. */
export function createTurnRows(database: DatabaseSync, isolate: IsolateTurn) {
  const statements = prepareTurnStatements(database);
  const toTurn = (row: TurnRow): StoredTurn => {
    try {
      return parseTurn(row);
    } catch (error) {
      if (!(error instanceof UnreadableRow)) throw error;
      isolate(row.tenant, row.turnId);
      return parseTurn(statements.select.get(row.tenant, row.turnId) as unknown as TurnRow);
    }
  };
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
          result: writeResult(result),
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
  const columns = `position, tenant, id AS turnId, conversation_id AS conversationId, substr(question, 1, 1000000) AS question, status,
    created_at AS createdAt, ended_at AS endedAt, stop_reason AS stopReason, superseded_by AS supersededBy, result IS NULL AS isResultMissing,
    ${bounded("result")} AS result`;
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

function parseTurn(row: TurnRow): StoredTurn {
  const { position: _, isResultMissing, result, ...turn } = row;
  if (!isTurnState(turn)) throw new UnreadableRow("has an unknown status");
  return { ...turn, result: isResultMissing === 1 ? null : parseRow("result", result) };
}

type IsolateTurn = (tenant: string, turnId: string) => void;

/** Runs `read` and, if it finds a row that cannot be read, once more after `isolate` has put such rows aside. */
function readOrIsolate<Value>(read: () => Value, isolate: () => void): Value {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof UnreadableRow)) throw error;
    isolate();
    return read();
  }
}

export type EventRows = ReturnType<typeof createEventRows>;

/** `isolate` as in `createTurnRows`. */
export function createEventRows(database: DatabaseSync, isolate: IsolateTurn) {
  const insert = database.prepare("INSERT INTO events (tenant, turn_id, seq, at, event) VALUES (?, ?, ?, ?, ?)");
  const select = database.prepare(
    `SELECT seq, at, ${bounded("event")} AS event FROM events WHERE tenant = ? AND turn_id = ? AND seq > ? ORDER BY seq`,
  );
  const measure = database.prepare("SELECT coalesce(sum(octet_length(event)), 0) AS bytes FROM events WHERE tenant = ? AND turn_id = ?");
  const read = (tenant: string, turnId: string, after: number): StoredEvent[] => {
    if (Number(measure.get(tenant, turnId)!["bytes"]) > MAX_EVENTS_BYTES) throw new UnreadableRow("is too large together with others");
    return select
      .all(tenant, turnId, after)
      .map(({ seq, at, event }) => ({ seq: Number(seq), at: String(at), event: parseRow("event", event) }));
  };
  return {
    append: ({ tenant, turnId }: { tenant: string; turnId: string }, { seq, at, event }: StoredEvent): void =>
      void insert.run(tenant, turnId, seq, at, JSON.stringify(event)),
    /** The events after number `after`, in order. */
    read: ({ tenant, turnId, after = 0 }: { tenant: string; turnId: string; after?: number | undefined }): StoredEvent[] =>
      readOrIsolate(
        () => read(tenant, turnId, after),
        () => isolate(tenant, turnId),
      ),
  };
}

export type CellRunRows = ReturnType<typeof createCellRunRows>;

/** `isolate` as in `createTurnRows`. */
export function createCellRunRows(database: DatabaseSync, isolate: IsolateTurn) {
  const insert = database.prepare("INSERT INTO cell_runs (tenant, turn_id, run) VALUES (?, ?, ?)");
  const select = database.prepare(`SELECT ${bounded("run")} AS run FROM cell_runs WHERE tenant = ? AND turn_id = ? ORDER BY position`);
  return {
    add: (tenant: string, run: CellRun): void => void insert.run(tenant, run.turnId, JSON.stringify(run)),
    /** Oldest first. */
    list: (tenant: string, turnId: string): CellRun[] =>
      readOrIsolate(
        () => select.all(tenant, turnId).map(({ run }) => parseRow("cellRun", run)),
        () => isolate(tenant, turnId),
      ),
  };
}
