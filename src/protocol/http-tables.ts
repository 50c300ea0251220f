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
});

export const aliasListSchema: z.ZodType<{ aliases: Alias[] }> = z.strictObject({ aliases: z.array(aliasSchema) });

export type TableCell = string | number | boolean | null;

const tableCell: z.ZodType<TableCell> = z.union([z.string(), z.number(), z.boolean(), z.null()]);

export interface TableColumn {
  name: string;
  type: string;
  nulls: number;
  /** 0 to 1. */
  nullShare: number;
  min?: TableCell | undefined;
  max?: TableCell | undefined;
  distinct?: number | undefined;
}

export interface TableSchema {
  alias: string;
  rows: number;
  columns: TableColumn[];
}

export const tableSchemaSchema: z.ZodType<TableSchema> = z.strictObject({
  alias: z.string(),
  rows: z.int().nonnegative(),
  columns: z.array(
    z.strictObject({
      name: z.string(),
      type: z.string(),
      nulls: z.int().nonnegative(),
      nullShare: z.number().min(0).max(1),
      min: tableCell.optional(),
      max: tableCell.optional(),
      distinct: z.int().nonnegative().optional(),
    }),
  ),
});

export const filterOperators = ["=", "!=", "<", "<=", ">", ">=", "contains", "is null", "is not null"] as const;

export interface TableFilter {
  column: string;
  op: (typeof filterOperators)[number];
  value?: TableCell | undefined;
}

export const tableFilterSchema: z.ZodType<TableFilter[]> = z
  .array(z.strictObject({ column: z.string(), op: z.enum(filterOperators), value: tableCell.optional() }))
  .max(20);

export interface TableRows {
  alias: string;
  columns: string[];
  /** Cells in the order of the columns. Integers past 2^53 are texts. */
  rows: TableCell[][];
  offset: number;
  limit: number;
  totalRows: number;
  /** After search and filters. */
  matchedRows: number;
}

export const maxPageRows = 1000;

export const tableRowsSchema: z.ZodType<TableRows> = z.strictObject({
  alias: z.string(),
  columns: z.array(z.string()),
  rows: z.array(z.array(tableCell)),
  offset: z.int().nonnegative(),
  limit: z.int().positive().max(maxPageRows),
  totalRows: z.int().nonnegative(),
  matchedRows: z.int().nonnegative(),
});
