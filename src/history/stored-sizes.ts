import type { DatabaseSync } from "node:sqlite";
import type { FileNames } from "./history.ts";

export type StoredSizes = ReturnType<typeof createStoredSizes>;

export interface ConversationSize {
  /** Rows, and the files with the sizes in their rows, each once. */
  readonly bytes: number;
  /** Files whose rows have no size: manifests of datasets, and bodies of datasets whose evidence or upload has no row any more. */
  readonly unmeasured: Pick<FileNames, "datasets" | "evidence">;
}

/** How much is stored. Reads sizes only, never the contents, so that it stays fast with large rows. */
export function createStoredSizes(database: DatabaseSync) {
  const ofConversation = "conversation_id = :id";
  const ofItsTurns = "turn_id IN (SELECT id FROM turns WHERE tenant = :tenant AND conversation_id = :id)";
  const hasNoRow = (table: string): string =>
    `NOT EXISTS (SELECT 1 FROM ${table} other WHERE other.tenant = :tenant AND other.conversation_id = :id AND other.sha256 = dataset_bodies.sha256)`;
  const conversationRows = database.prepare(sizeOfRows({ conversations: "id = :id", inConversation: ofConversation, inTurn: ofItsTurns }));
  const conversationFiles = database.prepare(
    `SELECT coalesce(sum(bytes), 0) AS bytes FROM (
       SELECT 'evidence', sha256, bytes FROM evidence WHERE tenant = :tenant AND ${ofConversation}
       UNION SELECT 'upload', sha256, bytes FROM uploads WHERE tenant = :tenant AND ${ofConversation}
       UNION SELECT type, content_hash, bytes FROM artifacts WHERE tenant = :tenant AND ${ofItsTurns})`,
  );
  const manifests = database.prepare(
    `SELECT DISTINCT dataset_hash AS name FROM turns WHERE tenant = :tenant AND ${ofConversation} AND dataset_hash IS NOT NULL`,
  );
  const bodies = database.prepare(
    `SELECT DISTINCT sha256 AS name FROM dataset_bodies WHERE tenant = :tenant AND ${ofItsTurns} AND ${hasNoRow("evidence")} AND ${hasNoRow("uploads")}`,
  );
  const tenantRows = database.prepare(sizeOfRows({ conversations: "TRUE", inConversation: "TRUE", inTurn: "TRUE" }));
  return {
    ofConversation(tenant: string, id: string): ConversationSize {
      const place = { tenant, id };
      const names = (statement: typeof bodies): string[] => statement.all(place).map(({ name }) => String(name));
      const bytes = Number(conversationRows.get(place)!["bytes"]) + Number(conversationFiles.get(place)!["bytes"]);
      return { bytes, unmeasured: { datasets: names(manifests), evidence: names(bodies) } };
    },
    /** The size of all rows of a tenant. */
    ofRows: (tenant: string): number => Number(tenantRows.get({ tenant })!["bytes"]),
  };
}

/** The conditions select rows of conversations, of tables that name a conversation, and of tables that name a turn. */
function sizeOfRows({ conversations, inConversation, inTurn }: Record<"conversations" | "inConversation" | "inTurn", string>): string {
  const size = (table: string, condition: string, columns: readonly string[]): string => {
    const bytes = columns.map((column) => `coalesce(octet_length(${column}), 0)`).join(" + ");
    return `(SELECT coalesce(sum(${bytes}), 0) FROM ${table} WHERE tenant = :tenant AND ${condition})`;
  };
  const sizes = [
    size("conversations", conversations, ["tenant", "id", "title", "created_at", "updated_at"]),
    size("turns", inConversation, ["tenant", "id", "conversation_id", "question", "answer", "result"]),
    size("events", inTurn, ["tenant", "turn_id", "at", "event"]),
    size("cell_runs", inTurn, ["tenant", "turn_id", "run"]),
    size("evidence", inConversation, ["tenant", "conversation_id", "alias", "turn_id", "record", "sha256"]),
    size("uploads", inConversation, ["tenant", "conversation_id", "alias", "at", "record", "sha256"]),
    size("quarantine", inConversation, ["tenant", "conversation_id", "turn_id", "name", "reason", "content"]),
  ];
  return `SELECT ${sizes.join(" + ")} AS bytes`;
}
