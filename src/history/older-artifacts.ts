import type { DatabaseSync } from "node:sqlite";
import type { ArtifactReference } from "../protocol/artifact-reference.ts";
import { inTransaction } from "./rows.ts";

/** A row that may contain artifacts with their data, as older versions wrote them. */
export interface OlderRow {
  readonly kind: keyof typeof places;
  readonly tenant: string;
  readonly turnId: string;
  /** The number of an event, or the position of the row. */
  readonly number: number;
}

/** Where rows of each kind are, and where their artifacts are. A path that a row does not have is skipped. */
const places = {
  result: { table: "turns", column: "result", where: "tenant = :tenant AND id = :turnId AND position = :number", paths: ["$.artifacts"] },
  event: {
    ...{ table: "events", column: "event", where: "tenant = :tenant AND turn_id = :turnId AND seq = :number" },
    paths: ["$.artifact", "$.result.artifacts"],
  },
  "cell run": {
    ...{ table: "cell_runs", column: "run", where: "tenant = :tenant AND turn_id = :turnId AND position = :number" },
    paths: ["$.artifacts"],
  },
} as const;

export type OlderArtifacts = ReturnType<typeof createOlderArtifacts>;

/**
 * Rows that still contain the data of artifacts. A migration of the schema lists them once; each leaves the list together with its data, so that an
 * interrupted migration goes on where it was. SQLite takes the rows apart: one may be longer than a string can be, or have more data than fits in memory.
 */
export function createOlderArtifacts(database: DatabaseSync) {
  const next = database.prepare(
    "SELECT kind, tenant, turn_id AS turnId, number FROM older_rows WHERE (kind, tenant, turn_id, number) > (?, ?, ?, ?) ORDER BY kind, tenant, turn_id, number LIMIT 1",
  );
  const remove = database.prepare(
    "DELETE FROM older_rows WHERE kind = :kind AND tenant = :tenant AND turn_id = :turnId AND number = :number",
  );

  /** The JSON of each artifact at a path, one at a time. Throws for a row that is not JSON. */
  function* listAt({ kind, ...key }: OlderRow, at: string): Generator<string> {
    const { table, column, where } = places[kind];
    const isOne = at === "$.artifact";
    const row = `(SELECT ${column} AS content FROM ${table} WHERE ${where})`;
    const sql = isOne
      ? `SELECT json_extract(content, :at) AS value FROM ${row} WHERE json_type(content, :at) = 'object'`
      : `SELECT entry.value FROM ${row}, json_each(content, :at) entry WHERE entry.type = 'object'`;
    const select = database.prepare(sql);
    for (const { value } of select.iterate({ ...key, at })) yield String(value);
  }

  return {
    /** Yields the rows of the list, also those that stay on it. */
    *rows(): Generator<OlderRow> {
      let last: readonly [string, string, string, number] = ["", "", "", -1];
      for (;;) {
        const row = next.get(...last) as OlderRow | undefined;
        if (row === undefined) return;
        yield row;
        last = [row.kind, row.tenant, row.turnId, row.number];
      }
    },
    /** Replaces the artifacts of a row by what `toReference` makes of the JSON of each, and removes the row from the list. */
    async migrate(row: OlderRow, toReference: (json: string) => Promise<ArtifactReference>): Promise<void> {
      const { kind, ...key } = row;
      const { table, column, where, paths } = places[kind];
      const found: { readonly at: string; readonly references: ArtifactReference[] }[] = [];
      for (const at of paths) {
        const references: ArtifactReference[] = [];
        for (const json of listAt(row, at)) references.push(await toReference(json));
        if (references.length > 0) found.push({ at, references });
      }
      inTransaction(database, () => {
        for (const { at, references } of found) {
          const json = JSON.stringify(at === "$.artifact" ? references[0] : references);
          const update = `UPDATE ${table} SET ${column} = json_replace(${column}, :at, json(:json)) WHERE ${where}`;
          database.prepare(update).run({ ...key, at, json });
        }
        remove.run({ ...row });
      });
    },
    /** Gives the space of migrated data back to the file system. */
    compact: (): void => database.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);"),
  };
}

/** The migration of the schema that lists the rows. All that have an artifact contain this word; the others are left alone. */
export const listOlderRows = `
  CREATE TABLE older_rows (
    kind TEXT NOT NULL, tenant TEXT NOT NULL, turn_id TEXT NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (kind, tenant, turn_id, number)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO older_rows SELECT 'result', tenant, id, position FROM turns WHERE instr(result, '"contentHash"') > 0;
  INSERT INTO older_rows SELECT 'event', tenant, turn_id, seq FROM events WHERE instr(event, '"contentHash"') > 0;
  INSERT INTO older_rows SELECT 'cell run', tenant, turn_id, position FROM cell_runs WHERE instr(run, '"contentHash"') > 0;
`;
