import { z } from "zod";
import { httpTimeSchema } from "./http-error.ts";

const count = z.int().nonnegative();

/** An alias of a conversation: a tool output, the result of a cell, or a file. */
export const aliasSchema = z.strictObject({
  alias: z.string(),
  source: z.enum(["tool", "result", "data"]),
  /** The full name of the tool, or the name of the file. */
  tool: z.string(),
  format: z.string(),
  bytes: count,
  rows: count.nullable(),
  columns: z.array(z.string()),
  at: httpTimeSchema,
  turnId: z.string().nullable(),
  /** Whether its rows can be paged through. */
  hasTable: z.boolean(),
  /** Why the last attempt to read it failed. */
  problem: z.string().optional(),
});

export const aliasListSchema = z.strictObject({ aliases: z.array(aliasSchema) });

const column = z.looseObject({
  name: z.string(),
  /** The dtype in pandas. */
  dtype: z.string(),
  type: z.enum(["integer", "number", "text", "boolean", "time", "other"]),
  nulls: count,
  nullShare: z.number().min(0).max(1),
  distinct: count.nullish(),
  min: z.unknown().optional(),
  max: z.unknown().optional(),
  mean: z.unknown().optional(),
  examples: z.array(z.unknown()).optional(),
});

/** The columns of an alias, determined in a sandbox. */
export const tableSchemaSchema = z.looseObject({
  alias: z.string(),
  format: z.string(),
  bytes: count,
  rows: count,
  columns: z.array(column),
  notes: z.array(z.string()).optional(),
});

const tableCell = z.union([z.string(), z.number(), z.boolean(), z.null()]);

/** One page of the rows that match search and filters. */
export const tableRowsSchema = z.looseObject({
  alias: z.string(),
  columns: z.array(z.string()),
  /** Cells in the order of the columns. */
  rows: z.array(z.array(tableCell)),
  offset: count,
  returned: count,
  total: count,
  /** Rows that match search and filters. */
  matched: count,
  nextOffset: count.nullable(),
  notes: z.array(z.string()).optional(),
});

/** Rows from a client, to be written as a file. */
export const givenTableSchema = z
  .strictObject({ columns: z.array(z.string()).min(1).max(10_000), rows: z.array(z.array(tableCell)) })
  .refine(({ columns }) => new Set(columns).size === columns.length, { path: ["columns"], error: "must not repeat a name" })
  .refine(({ columns, rows }) => rows.every((row) => row.length === columns.length), {
    path: ["rows"],
    error: "must have one cell for each column",
  });

export type Alias = z.infer<typeof aliasSchema>;
export type TableColumn = z.infer<typeof column>;
export type TableSchema = z.infer<typeof tableSchemaSchema>;
export type TableCell = z.infer<typeof tableCell>;
export type GivenTable = z.infer<typeof givenTableSchema>;
export type TableRows = z.infer<typeof tableRowsSchema>;
