import type { DatabaseSync } from "node:sqlite";
import type { TurnEvent } from "../protocol/turn-events.ts";
import type { EventRows } from "./contract.ts";

export function createEventRows(database: DatabaseSync): EventRows {
  const insert = database.prepare("INSERT INTO events (tenant, turn_id, seq, at, event) VALUES (?, ?, ?, ?, ?)");
  const select = database.prepare("SELECT seq, at, event FROM events WHERE tenant = ? AND turn_id = ? AND seq > ? ORDER BY seq");
  return {
    append: ({ tenant, turnId }, { seq, at, event }) => void insert.run(tenant, turnId, seq, at, JSON.stringify(event)),
    read: ({ tenant, turnId, after = 0 }) =>
      select
        .all(tenant, turnId, after)
        .map(({ seq, at, event }) => ({ seq: Number(seq), at: String(at), event: JSON.parse(String(event)) as TurnEvent })),
  };
}
