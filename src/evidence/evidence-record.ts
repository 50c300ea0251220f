import { z } from "zod";
import type { EvidenceItem } from "./evidence-store.ts";

const count = z.int().nonnegative();

/** All that is known of one item but its bytes, as a document that can be stored. The bytes are found by their hash. */
export const evidenceRecordSchema = z.strictObject({
  schemaVersion: z.literal(1),
  alias: z.string().regex(/^[A-Za-z_]\w*$/),
  source: z.enum(["tool", "result", "data"]),
  /** The tool's full name; of a result the tool that ran the cell; of data the name it was given. */
  tool: z.string(),
  arguments: z.unknown(),
  /** ISO 8601. */
  at: z.string(),
  /** Of the bytes. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: count,
  format: z.enum(["json", "jsonl", "csv", "tsv", "parquet", "xlsx", "text", "bytes"]),
  mimeType: z.string().optional(),
  shape: z.strictObject({
    /** `records`: rows are objects. `array`: rows are anything else. `map`: many like values by key. `table`: csv or tsv. */
    kind: z.enum(["records", "array", "map", "table", "object", "scalar", "text", "bytes"]),
    /** Exact. Null where there are no rows, or where counting them takes Python. */
    rows: count.nullable(),
    /** Names of columns, in the order in which they came up; the first 300 of `columnCount`. */
    columns: z.array(z.string()).readonly(),
    columnCount: count,
    /** Rows that were not looked at may have more. */
    columnsFromSample: z.boolean(),
    /** Keys from the root of the value to its rows. */
    path: z.array(z.string()).readonly(),
    /** Of text. */
    lines: count.optional(),
    characters: count.optional(),
  }),
  /**
   * There when the bytes may not be what the tool meant, because only a parsed value reached us: counts of what it cannot vouch for. Decimals that were
   * rounded before they reached us cannot be told and are not counted.
   */
  precisionLoss: z
    .strictObject({
      integersPast2To53: count,
      nonFinite: count,
      /** Values without a JSON form: functions, maps, text with halves of characters. */
      unrepresentable: count,
    })
    .optional(),
  /** The tool said that this output is an error. */
  isError: z.literal(true).optional(),
  /** Aliases of the other parts of the same output. */
  attachments: z.array(z.string()).readonly(),
  /** The alias of the output that this one is a part of. */
  partOf: z.string().optional(),
});

export type EvidenceRecord = z.infer<typeof evidenceRecordSchema>;

export function toEvidenceRecord(item: EvidenceItem): EvidenceRecord {
  const { alias, source, tool, at, sha256, bytes, format, mimeType, shape, precisionLoss, isError, attachments, partOf } = item;
  const facts = { alias, source, tool, arguments: item.arguments, at, sha256, bytes, format, mimeType, shape };
  return { schemaVersion: 1, ...facts, precisionLoss, isError, attachments, partOf };
}
