import { z } from "zod";
import type { EvidenceFormat, EvidenceItem, FileFindings } from "../../evidence/evidence-store.ts";
import type { TableQuestion, TableRefusal, TableReply } from "./ask-table.ts";

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

/** What a sandbox says of a table: checked, because it comes out of one. */
const tableSchemaSchema = z.strictObject({
  rows: count,
  columnCount: count,
  columns: z.array(columnFacts).max(500),
  notes: z.array(z.string()),
});

export type ColumnFacts = z.infer<typeof columnFacts>;
type TableSchema = z.infer<typeof tableSchemaSchema>;

export type SchemaReply =
  | { readonly ok: true; readonly version: string; readonly schema: TableSchema; readonly json: string }
  | { readonly ok: false; readonly version: string; readonly refusal: TableRefusal };

/** Schemas of tables, worked out in a sandbox once for each version of each. */
export interface TableSchemas {
  /** What is known already, or null. Throws when the file cannot be looked at. */
  known(item: EvidenceItem): SchemaReply | null;
  /** In the order of the items. One is asked where its rows can be asked next; several in one sandbox that ends. */
  describe(items: readonly EvidenceItem[], options?: { signal?: AbortSignal | undefined }): Promise<SchemaReply[]>;
}

interface AskTables {
  ask(item: EvidenceItem, question: TableQuestion, options: { signal?: AbortSignal | undefined }): Promise<TableReply>;
  askEach(items: readonly EvidenceItem[], question: TableQuestion, options: { signal?: AbortSignal | undefined }): Promise<TableReply[]>;
}

export function createTableSchemas(tables: AskTables): TableSchemas {
  const kept = new Map<string, SchemaReply>();

  function known(item: EvidenceItem): SchemaReply | null {
    const found = kept.get(toKey(item, versionOf(item)));
    if (found !== undefined) teach(item, found);
    return found ?? null;
  }

  async function describe(items: readonly EvidenceItem[], { signal }: { signal?: AbortSignal | undefined } = {}): Promise<SchemaReply[]> {
    const missing = items.filter((item) => known(item) === null);
    const options = { signal };
    const asked =
      missing.length === 1
        ? [await tables.ask(missing[0]!, { ask: "schema" }, options)]
        : missing.length === 0
          ? []
          : await tables.askEach(missing, { ask: "schema" }, options);
    const fresh = new Map(missing.map((item, index) => [item, keep(item, asked[index]!)]));
    return items.map((item) => fresh.get(item) ?? known(item)!);
  }

  function keep(item: EvidenceItem, reply: TableReply): SchemaReply {
    const made = toSchemaReply(item, reply);
    if (made.ok || made.refusal.code === "DATA_UNREADABLE") {
      kept.set(toKey(item, made.version), made);
      for (const oldest of [...kept.keys()].slice(0, kept.size - KEPT_SCHEMAS)) kept.delete(oldest);
    }
    teach(item, made);
    return made;
  }

  /** Previews of a file say what is known of it. */
  function teach({ file, format }: EvidenceItem, reply: SchemaReply): void {
    if (reply.ok) file?.learn(toFindings(reply.schema, { version: reply.version, format }));
  }

  return { known, describe };
}

const KEPT_SCHEMAS = 1000;

/** Changes whenever the bytes do. Looks at the file, or hashes what is kept, once. */
export function versionOf(item: EvidenceItem): string {
  return item.file === undefined ? item.sha256 : item.file.version();
}

/** One table for all who hold the same bytes under the same name, within a tenant: a conversation that is opened again finds it. */
export function toKey({ tenant, alias }: EvidenceItem, version: string): string {
  return JSON.stringify([tenant, alias, version]);
}

function toSchemaReply(item: EvidenceItem, reply: TableReply): SchemaReply {
  const version = reply.version ?? "";
  if (!reply.ok) return { ok: false, version, refusal: reply.refusal };
  const parsed = tableSchemaSchema.safeParse(JSON.parse(reply.json));
  if (parsed.success) return { ok: true, version, schema: parsed.data, json: reply.json };
  return { ok: false, version, refusal: { code: "INTERNAL_ERROR", why: `The sandbox of ${item.alias} gave no schema.`, hints: [] } };
}

const SHAPE_COLUMNS = 300;

/** What previews say of a file once a sandbox has read it. */
function toFindings(schema: TableSchema, { version, format }: { version: string; format: EvidenceFormat }): FileFindings {
  const { rows, columns, columnCount } = schema;
  const none = { columns: [], columnCount: 0, columnsFromSample: false, path: [] };
  if (format === "text") return { version, shape: { kind: "text", rows: null, ...none, lines: rows }, schema: [] };
  const names = columns.slice(0, SHAPE_COLUMNS).map(({ name }) => name);
  const shape = {
    kind: format === "json" || format === "jsonl" ? "records" : "table",
    rows,
    columns: names,
    columnCount,
    columnsFromSample: false,
    path: [],
  } as const;
  return { version, shape, schema: toTexts(columns) };
}

/** From full to terse. */
function toTexts(columns: readonly ColumnFacts[]): string[] {
  const full = columns.map(({ name, type, nullShare, min, max }) => ({
    name,
    type,
    ...(nullShare > 0 && { nullShare }),
    ...(min !== undefined && { min, max }),
  }));
  const types = Object.fromEntries(columns.map(({ name, type }) => [name, type]));
  return [full, types, columns.map(({ name }) => name), `${columns.length} columns`].map((one) => JSON.stringify(one));
}
