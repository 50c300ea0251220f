import type { History } from "../../history/contract.ts";
import type { Alias } from "../../protocol/http-tables.ts";
import type { LiveConversation } from "./create-conversations.ts";

const withRows: ReadonlySet<string> = new Set(["records", "array", "map", "table"]);
const tableFormats: ReadonlySet<string> = new Set(["csv", "tsv", "parquet", "xlsx", "jsonl"]);

/** What a conversation holds, oldest first. Nothing is read for it. */
export function toAliases({ tenant, id, evidence }: LiveConversation, history: History): Alias[] {
  const turnOf = new Map(history.evidence.list(tenant, id).map(({ alias, turnId }) => [alias, turnId]));
  return evidence.aliases().flatMap((alias) => {
    const item = evidence.get(alias);
    if (item === null) return [];
    const { source, tool, format, bytes, shape, at } = item;
    return [
      {
        alias,
        source,
        tool,
        format,
        bytes,
        rows: shape.rows,
        columns: [...shape.columns],
        at,
        turnId: turnOf.get(alias) ?? null,
        hasTable: tableFormats.has(format) || withRows.has(shape.kind),
      },
    ];
  });
}
