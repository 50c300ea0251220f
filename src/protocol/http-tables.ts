import { z } from "zod";
import { httpTimeSchema } from "./http-error.ts";

/** One alias of a conversation: a tool's output, a cell's result or a file. */
export interface Alias {
  alias: string;
  source: "tool" | "result" | "data";
  /** The tool's full name, or the name of the file. */
  tool: string;
  format: string;
  bytes: number;
  rows: number | null;
  columns: string[];
  at: string;
  turnId: string | null;
  /** Whether it has rows that can be paged through. */
  hasTable: boolean;
  /** Why it cannot be read, as far as that was tried. */
  problem?: string | undefined;
}

export const aliasSchema: z.ZodType<Alias> = z.strictObject({
  alias: z.string(),
  source: z.enum(["tool", "result", "data"]),
  tool: z.string(),
  format: z.string(),
  bytes: z.int().nonnegative(),
  rows: z.int().nonnegative().nullable(),
  columns: z.array(z.string()),
  at: httpTimeSchema,
  turnId: z.string().nullable(),
  hasTable: z.boolean(),
  problem: z.string().optional(),
});

export const aliasListSchema: z.ZodType<{ aliases: Alias[] }> = z.strictObject({ aliases: z.array(aliasSchema) });

export type TableCell = string | number | boolean | null;

const tableCell: z.ZodType<TableCell> = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const count = z.int().nonnegative();

export interface TableColumn {
  name: string;
  /** As pandas names it. */
  dtype: string;
  type: "integer" | "number" | "text" | "boolean" | "time" | "other";
  nulls: number;
  /** 0 to 1. */
  nullShare: number;
  distinct?: number | null | undefined;
  min?: unknown;
  max?: unknown;
  mean?: unknown;
  examples?: unknown[] | undefined;
}

/** The columns of an alias, worked out in a sandbox. */
export interface TableSchema {
  alias: string;
  format: string;
  bytes: number;
  rows: number;
  columns: TableColumn[];
  notes?: string[] | undefined;
  [more: string]: unknown;
}

export const tableSchemaSchema: z.ZodType<TableSchema> = z.looseObject({
  alias: z.string(),
  format: z.string(),
  bytes: count,
  rows: count,
  columns: z.array(
    z.looseObject({
      name: z.string(),
      dtype: z.string(),
      type: z.enum(["integer", "number", "text", "boolean", "time", "other"]),
      nulls: count,
      nullShare: z.number().min(0).max(1),
      distinct: count.nullish(),
      min: z.unknown().optional(),
      max: z.unknown().optional(),
      mean: z.unknown().optional(),
      examples: z.array(z.unknown()).optional(),
    }),
  ),
  notes: z.array(z.string()).optional(),
});

/** One page of rows: of all of them, or of those that search and filters leave. */
export interface TableRows {
  alias: string;
  columns: string[];
  /** Cells in the order of the columns. */
  rows: TableCell[][];
  offset: number;
  returned: number;
  total: number;
  /** After search and filters. */
  matched: number;
  nextOffset: number | null;
  notes?: string[] | undefined;
  [more: string]: unknown;
}

export const tableRowsSchema: z.ZodType<TableRows> = z.looseObject({
  alias: z.string(),
  columns: z.array(z.string()),
  rows: z.array(z.array(tableCell)),
  offset: count,
  returned: count,
  total: count,
  matched: count,
  nextOffset: count.nullable(),
  notes: z.array(z.string()).optional(),
});
