import { z } from "zod";
import type { EvidenceFormat, EvidenceItem, EvidenceShape, PrecisionLoss } from "./contract.ts";

/** All that is known of one item but its bytes, as a document that can be stored. The bytes are found by their hash. */
export interface EvidenceRecord {
  schemaVersion: 1;
  alias: string;
  source: EvidenceItem["source"];
  tool: string;
  arguments?: unknown;
  at: string;
  sha256: string;
  bytes: number;
  format: EvidenceFormat;
  mimeType?: string | undefined;
  shape: EvidenceShape;
  precisionLoss?: PrecisionLoss | undefined;
  isError?: true | undefined;
  attachments: readonly string[];
  partOf?: string | undefined;
}

const count = z.int().nonnegative();

export const evidenceRecordSchema: z.ZodType<EvidenceRecord> = z.strictObject({
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
    columns: z.array(z.string()),
    columnCount: count,
    columnsFromSample: z.boolean(),
    path: z.array(z.string()),
    lines: count.optional(),
    characters: count.optional(),
  }),
  precisionLoss: z.strictObject({ integersPast2To53: count, nonFinite: count, unrepresentable: count }).optional(),
  isError: z.literal(true).optional(),
  attachments: z.array(z.string()),
  partOf: z.string().optional(),
});

export function toEvidenceRecord(item: EvidenceItem): EvidenceRecord {
  const { alias, source, tool, at, sha256, bytes, format, mimeType, shape, precisionLoss, isError, attachments, partOf } = item;
  return {
    schemaVersion: 1,
    alias,
    source,
    tool,
    arguments: item.arguments,
    at,
    sha256,
    bytes,
    format,
    ...(mimeType === undefined ? {} : { mimeType }),
    shape,
    ...(precisionLoss === undefined ? {} : { precisionLoss }),
    ...(isError === undefined ? {} : { isError }),
    attachments,
    ...(partOf === undefined ? {} : { partOf }),
  };
}
