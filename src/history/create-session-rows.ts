import type { DatabaseSync } from "node:sqlite";
import type { SessionRows } from "./contract.ts";

export function createSessionRows(database: DatabaseSync): SessionRows {
  const insert = database.prepare("INSERT INTO sessions (sha256, tenant, is_operator, expires_at) VALUES (?, ?, ?, ?)");
  const select = database.prepare("SELECT tenant, is_operator, expires_at FROM sessions WHERE sha256 = ? AND expires_at > ?");
  const remove = database.prepare("DELETE FROM sessions WHERE sha256 = ?");
  const removeExpired = database.prepare("DELETE FROM sessions WHERE expires_at <= ?");
  return {
    add: (sha256, { tenant, isOperator, expiresAt }) => void insert.run(sha256, tenant, isOperator ? 1 : 0, expiresAt),
    find(sha256, at) {
      const row = select.get(sha256, at);
      if (row === undefined) return null;
      return { tenant: String(row["tenant"]), isOperator: row["is_operator"] === 1, expiresAt: String(row["expires_at"]) };
    },
    remove: (sha256) => void remove.run(sha256),
    removeExpired: (at) => void removeExpired.run(at),
  };
}
