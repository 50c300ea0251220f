import type { EvidenceItem } from "../../evidence/contract.ts";
import type { TableRefusal, TableReply } from "./ask-table.ts";
import type { TableQuestion } from "./table-code.ts";
import { tableSchemaSchema, toFindings, type TableSchema } from "./table-answers.ts";

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
