import { z } from "zod";
import type { EvidenceFormat, FileFindings } from "../../evidence/contract.ts";

export interface ColumnFacts {
  readonly name: string;
  readonly dtype: string;
  readonly type: string;
  readonly nulls: number;
  readonly nullShare: number;
  readonly distinct: number | null;
  readonly min?: unknown;
  readonly max?: unknown;
  readonly mean?: unknown;
  readonly examples: readonly unknown[];
}

export interface TableSchema {
  readonly rows: number;
  readonly columnCount: number;
  readonly columns: readonly ColumnFacts[];
  readonly notes: readonly string[];
}

const count = z.int().nonnegative();

/** What a sandbox says of a table: checked, because it comes out of one. */
export const tableSchemaSchema: z.ZodType<TableSchema> = z.strictObject({
  rows: count,
  columnCount: count,
  columns: z
    .array(
      z.object({
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
      }),
    )
    .max(500),
  notes: z.array(z.string()),
});

export interface PageFacts {
  readonly columns: readonly string[];
  readonly rows: readonly unknown[];
  readonly offset: number;
  readonly returned: number;
  readonly total: number;
  readonly matched: number;
  readonly nextOffset: number | null;
  readonly cutCells: number;
}

export const pageFactsSchema: z.ZodType<PageFacts> = z.strictObject({
  columns: z.array(z.string()),
  rows: z.array(z.unknown()),
  offset: count,
  returned: count,
  total: count,
  matched: count,
  nextOffset: count.nullable(),
  cutCells: count,
});

const SHAPE_COLUMNS = 300;

/** What previews say of a file once a sandbox has read it. */
export function toFindings(schema: TableSchema, { version, format }: { version: string; format: EvidenceFormat }): FileFindings {
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
