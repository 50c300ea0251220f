import { z } from "zod";
import type { EvidenceItem } from "./contract.ts";

const count = z.int().nonnegative();

/** All that is known of one item but its bytes, as a document that can be stored. The bytes are found by their hash. */
export const evidenceRecordSchema = z.strictObject({
  schemaVersion: z.literal(1),
  alias: z.string().regex(/^[A-Za-z_]\w*$/),
  source: z.enum(["tool", "result", "data"]),
  tool: z.string(),
  arguments: z.unknown(),
  at: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: count,
  format: z.enum(["json", "jsonl", "csv", "tsv", "parquet", "xlsx", "text", "bytes"]),
  mimeType: z.string().optional(),
  shape: z.strictObject({
    kind: z.enum(["records", "array", "map", "table", "object", "scalar", "text", "bytes"]),
    rows: count.nullable(),
    columns: z.array(z.string()).readonly(),
    columnCount: count,
    columnsFromSample: z.boolean(),
    path: z.array(z.string()).readonly(),
    lines: count.optional(),
    characters: count.optional(),
  }),
  precisionLoss: z.strictObject({ integersPast2To53: count, nonFinite: count, unrepresentable: count }).optional(),
  isError: z.literal(true).optional(),
  attachments: z.array(z.string()).readonly(),
  partOf: z.string().optional(),
});

export type EvidenceRecord = z.infer<typeof evidenceRecordSchema>;

export function toEvidenceRecord(item: EvidenceItem): EvidenceRecord {
  const { alias, source, tool, at, sha256, bytes, format, mimeType, shape, precisionLoss, isError, attachments, partOf } = item;
  const facts = { alias, source, tool, arguments: item.arguments, at, sha256, bytes, format, mimeType, shape };
  return { schemaVersion: 1, ...facts, precisionLoss, isError, attachments, partOf };
}
