import type { DatabaseSync } from "node:sqlite";

/** All of it or nothing. `IMMEDIATE`: nobody else writes meanwhile, of this process or another. Within another one it is a part of that. */
export function inTransaction<Value>(database: DatabaseSync, work: () => Value): Value {
  if (database.isTransaction) return work();
  database.exec("BEGIN IMMEDIATE");
  try {
    const value = work();
    database.exec("COMMIT");
    return value;
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}
