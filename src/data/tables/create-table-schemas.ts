import { z } from "zod";
import type { EvidenceFormat, EvidenceItem, FileFindings } from "../../evidence/evidence-store.ts";
import { readingSchema } from "../../protocol/reader.ts";
import type { DataCallOptions } from "../conversation-data.ts";
import type { Tables } from "./create-tables.ts";
import type { TableRefusal, TableReply } from "./query-table.ts";

const count = z.int().nonnegative();

const columnFacts = z.object({
  name: z.string(),
  dtype: z.string(),
  type: z.string(),
  nulls: count,
  nullShare: z.number().min(0).max(1),
  distinct: count.nullable(),
  min: z.unknown().optional(),
  max: z.unknown().optional(),
  mean: z.unknown().optional(),
  examples: z.array(z.unknown()).max(3),
});

/** A table as a sandbox describes it. Validated, because a sandbox is not trusted. */
const tableSchemaSchema = z.strictObject({
  rows: count,
  columnCount: count,
  columns: z.array(columnFacts).max(500),
  notes: z.array(z.string()),
  reader: readingSchema.optional(),
});

type ColumnFacts = z.infer<typeof columnFacts>;
type TableSchema = z.infer<typeof tableSchemaSchema>;

export type SchemaReply =
  | { readonly ok: true; readonly version: string; readonly schema: TableSchema; readonly json: string }
  | { readonly ok: false; readonly version: string; readonly refusal: TableRefusal };

/** Computes the schemas of tables in a sandbox, once per version of each table. */
export interface TableSchemas {
  /** Returns the cached schema, or null. Throws if the file cannot be opened. */
  known(item: EvidenceItem): SchemaReply | null;
  /** Returns the schemas in the order of the items. A single table stays open for further queries; several share one sandbox that is closed at the end. */
  describe(items: readonly EvidenceItem[], options?: DataCallOptions): Promise<SchemaReply[]>;
}

export function createTableSchemas(tables: Pick<Tables, "query" | "queryEach">): TableSchemas {
  const cache = new Map<string, SchemaReply>();

  function known(item: EvidenceItem): SchemaReply | null {
    const cached = cache.get(toTableKey(item, versionOf(item)));
    if (cached !== undefined) updatePreview(item, cached);
    return cached ?? null;
  }

  async function describe(items: readonly EvidenceItem[], options: DataCallOptions = {}): Promise<SchemaReply[]> {
    const missing = items.filter((item) => known(item) === null);
    const replies =
      missing.length === 1
        ? [await tables.query(missing[0]!, { ask: "schema" }, options)]
        : missing.length === 0
          ? []
          : await tables.queryEach(missing, { ask: "schema" }, options);
    const fresh = new Map(missing.map((item, index) => [item, store(item, replies[index]!)]));
    return items.map((item) => fresh.get(item) ?? known(item)!);
  }

  function store(item: EvidenceItem, tableReply: TableReply): SchemaReply {
    const reply = toSchemaReply(item, tableReply);
    if (reply.ok || reply.refusal.code === "DATA_UNREADABLE") {
      cache.set(toTableKey(item, reply.version), reply);
      for (const oldest of [...cache.keys()].slice(0, cache.size - MAX_CACHED_SCHEMAS)) cache.delete(oldest);
    }
    updatePreview(item, reply);
    return reply;
  }

  /** Lets the preview of a file show its schema. */
  function updatePreview({ file, format }: EvidenceItem, reply: SchemaReply): void {
    if (reply.ok) file?.learn(toFindings(reply.schema, { version: reply.version, format }));
  }

  return { known, describe };
}

const MAX_CACHED_SCHEMAS = 1000;

/** Returns a text that changes whenever the bytes may have changed. Opens the file, or hashes stored data once. */
export function versionOf(item: EvidenceItem): string {
  return item.file === undefined ? item.sha256 : item.file.version();
}

/** Conversations of one tenant share a table if its alias and its bytes are the same. A reopened conversation finds its tables again. */
export function toTableKey({ tenant, alias, reader }: EvidenceItem, version: string): string {
  return JSON.stringify([tenant, alias, version, reader]);
}

function toSchemaReply(item: EvidenceItem, reply: TableReply): SchemaReply {
  const version = reply.version ?? "";
  if (!reply.ok) return { ok: false, version, refusal: reply.refusal };
  const parsed = tableSchemaSchema.safeParse(JSON.parse(reply.json));
  if (parsed.success) return { ok: true, version, schema: parsed.data, json: reply.json };
  return {
    ok: false,
    version,
    refusal: { code: "INTERNAL_ERROR", why: `The sandbox of ${item.alias} returned no valid schema.`, hints: [] },
  };
}

const SHAPE_COLUMNS = 300;

/** What the preview of a file shows after a sandbox has read it. */
function toFindings(schema: TableSchema, { version, format }: { version: string; format: EvidenceFormat }): FileFindings {
  const { rows, columns, columnCount, reader: reading = null } = schema;
  const none = { columns: [], columnCount: 0, columnsFromSample: false, path: [] };
  if (format === "text") return { version, shape: { kind: "text", rows: null, ...none, lines: rows }, schema: [], reading };
  const names = columns.slice(0, SHAPE_COLUMNS).map(({ name }) => name);
  const shape = {
    kind: format === "json" || format === "jsonl" ? "records" : "table",
    rows,
    columns: names,
    columnCount,
    columnsFromSample: false,
    path: [],
  } as const;
  return { version, shape, schema: toSchemaTexts(columns), reading };
}

/** JSON texts of the schema, from the most detailed to the shortest. */
function toSchemaTexts(columns: readonly ColumnFacts[]): string[] {
  const full = columns.map(({ name, type, nullShare, min, max }) => ({
    name,
    type,
    ...(nullShare > 0 && { nullShare }),
    ...(min !== undefined && { min, max }),
  }));
  const types = Object.fromEntries(columns.map(({ name, type }) => [name, type]));
  return [full, types, columns.map(({ name }) => name), `${columns.length} columns`].map((text) => JSON.stringify(text));
}
