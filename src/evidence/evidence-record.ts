import { z } from "zod";
import { readerOptionsSchema } from "../protocol/reader.ts";
import type { EvidenceItem } from "./evidence-store.ts";

const count = z.int().nonnegative();

/** Everything about one item except its bytes, as a document that can be stored. The bytes are stored by their hash. */
export const evidenceRecordSchema = z.strictObject({
  schemaVersion: z.literal(1),
  alias: z.string().regex(/^[A-Za-z_]\w*$/),
  source: z.enum(["tool", "result", "data"]),
  /** The full name of the tool; for a result, the tool that ran the cell; for data, its name. */
  tool: z.string(),
  arguments: z.unknown(),
  /** ISO 8601. */
  at: z.string(),
  /** Hash of the bytes. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: count,
  format: z.enum(["json", "jsonl", "csv", "tsv", "parquet", "xlsx", "text", "bytes"]),
  mimeType: z.string().optional(),
  shape: z.strictObject({
    /** `records`: rows are objects. `array`: rows are other values. `map`: many similar values by key. `table`: csv or tsv. */
    kind: z.enum(["records", "array", "map", "table", "object", "scalar", "text", "bytes"]),
    /** Exact number of rows. Null if there are none, or if only Python can count them. */
    rows: count.nullable(),
    /** Column names in order of appearance; at most the first 300 of `columnCount`. */
    columns: z.array(z.string()).readonly(),
    columnCount: count,
    /** Whether other rows may have more columns. */
    columnsFromSample: z.boolean(),
    /** Keys from the root of the value to its rows. */
    path: z.array(z.string()).readonly(),
    /** Number of lines of a text. */
    lines: count.optional(),
    characters: count.optional(),
  }),
  /**
   * Set if the value reached us parsed and may have lost precision: counts of the affected values. Decimals that were rounded before cannot be detected
   * and are not counted.
   */
  precisionLoss: z
    .strictObject({
      integersPast2To53: count,
      nonFinite: count,
      /** Values that cannot be written as JSON: functions, maps, text with unpaired surrogates. */
      unrepresentable: count,
    })
    .optional(),
  /** How to read a CSV-like item, as given. What is missing is inferred. */
  reader: readerOptionsSchema.optional(),
  /** Whether the tool marked this output as an error. */
  isError: z.literal(true).optional(),
  /** Aliases of the other parts of the same output. */
  attachments: z.array(z.string()).readonly(),
  /** The main alias if this is another part of an output. */
  partOf: z.string().optional(),
});

export type EvidenceRecord = z.infer<typeof evidenceRecordSchema>;

export function toEvidenceRecord(item: EvidenceItem): EvidenceRecord {
  const { alias, source, tool, at, sha256, bytes, format, mimeType, shape, precisionLoss, reader, isError, attachments, partOf } = item;
  const facts = { alias, source, tool, arguments: item.arguments, at, sha256, bytes, format, mimeType, shape };
  return { schemaVersion: 1, ...facts, precisionLoss, reader, isError, attachments, partOf };
}
