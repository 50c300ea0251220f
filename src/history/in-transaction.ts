import type { DatabaseSync } from "node:sqlite";

/** All of it or nothing. `IMMEDIATE`: nobody else writes meanwhile, of this process or another. */
export function inTransaction<Value>(database: DatabaseSync, work: () => Value): Value {
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
