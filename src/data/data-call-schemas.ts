import { z } from "zod";

const filterOps = ["eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "startsWith", "isNull", "notNull"] as const;

const columnName = z.string().max(1000);
const plainValue = z.union([z.string().max(10_000), z.number(), z.boolean()]);

const filterTestSchema = z
  .strictObject({
    column: columnName,
    op: z.enum(filterOps).describe("contains and startsWith ignore case; null cells match isNull only."),
    value: z
      .union([plainValue, z.array(plainValue).min(1).max(100)])
      .optional()
      .describe("A list for in; none for isNull, notNull."),
  })
  .superRefine(({ op, value }, context) => {
    const needsNone = op === "isNull" || op === "notNull";
    const problem =
      needsNone && value !== undefined
        ? `${op} takes no value`
        : op === "in" && !Array.isArray(value)
          ? "in takes a list of values"
          : !needsNone && op !== "in" && (value === undefined || Array.isArray(value))
            ? `${op} takes one value`
            : null;
    if (problem !== null) context.addIssue({ code: "custom", path: ["value"], message: problem });
  });

/** A table given inline: rows as JSON, or the text of a CSV. One of the two. */
export const storeDataCallSchema = z
  .strictObject({
    name: z.string().min(1).max(48).describe("The alias: a Python name that is not taken."),
    data: z.unknown().optional().describe("Inline JSON: rows as a list of records, or any value."),
    csv: z.string().optional().describe("CSV text with a header line. Give data or csv."),
  })
  .superRefine(({ data, csv }, context) => {
    if ((data === undefined) === (csv === undefined))
      context.addIssue({
        code: "custom",
        path: [],
        message: data === undefined ? "needs data or csv" : "has both data and csv; give one of them",
      });
  });

export const listDataCallSchema = z.strictObject({
  aliases: z.array(z.string()).max(20).optional().describe("Only these, with their full schemas. All unless told."),
});

/** The same for pages of a program; each caller has bounds of its own for `limit`. */
function readSchema({ maxLimit, limit }: { maxLimit: number; limit: number }) {
  return z.strictObject({
    alias: z.string().describe("Of list_data, of a tool output or a result."),
    offset: z.int().nonnegative().max(Number.MAX_SAFE_INTEGER).optional().describe("Rows to skip; nextOffset of the page before."),
    limit: z.int().positive().max(maxLimit).optional().describe(`Rows to give, ${limit} unless told.`),
    columns: z.array(columnName).min(1).max(200).optional().describe("Only these, in this order."),
    filter: z.array(filterTestSchema).max(20).optional().describe("All must hold."),
    search: z.string().max(1000).optional().describe("Text in any cell, whatever its case."),
    sort: z
      .array(z.strictObject({ column: columnName, descending: z.boolean().optional() }))
      .max(5)
      .optional()
      .describe("Nulls come last."),
  });
}

export interface PageBounds {
  readonly limit: number;
  readonly maxLimit: number;
  readonly maxBytes: number;
  readonly maxCellCharacters: number;
}

/** What a model reads at once, and what a program does. */
export const modelPage: PageBounds = { limit: 50, maxLimit: 500, maxBytes: 32 * 1024, maxCellCharacters: 500 };
export const programPage: PageBounds = { limit: 100, maxLimit: 1000, maxBytes: 1024 * 1024, maxCellCharacters: 5000 };

export const readDataCallSchema = readSchema(modelPage);
export const pageCallSchema = readSchema(programPage);

export type ReadDataCall = z.infer<typeof readDataCallSchema>;
