import { z } from "zod";
import { parseArguments } from "../errors/parse-arguments.ts";
import type { EvidenceItem, EvidenceStore } from "../evidence/evidence-store.ts";
import { dataNotes, dataParameters } from "../prompts/data-tools.ts";
import type { DataAnswer, DataCallOptions } from "./conversation-data.ts";
import { invalidArguments, refuseFailure, refuseTable, refuseUnknownAlias } from "./data-errors.ts";
import type { Tables } from "./tables/create-tables.ts";
import { tablePageSchema, type TablePage, type TableQuery } from "./tables/query-table.ts";

const columnName = z.string().max(1000);
const plainValue = z.union([z.string().max(10_000), z.number(), z.boolean()]);

const filterSchema = z
  .strictObject({
    column: columnName,
    op: z
      .enum(["eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "startsWith", "isNull", "notNull"])
      .describe(dataParameters.filterOperator),
    value: z
      .union([plainValue, z.array(plainValue).min(1).max(100)])
      .optional()
      .describe(dataParameters.filterValue),
  })
  .superRefine(({ op, value }, context) => {
    const takesNoValue = op === "isNull" || op === "notNull";
    const problem =
      takesNoValue && value !== undefined
        ? `${op} takes no value`
        : op === "in" && !Array.isArray(value)
          ? "in takes a list of values"
          : !takesNoValue && op !== "in" && (value === undefined || Array.isArray(value))
            ? `${op} takes one value`
            : null;
    if (problem !== null) context.addIssue({ code: "custom", path: ["value"], message: problem });
  });

interface PageBounds {
  readonly defaultLimit: number;
  readonly maxLimit: number;
  readonly maxBytes: number;
  readonly maxCellCharacters: number;
}

const pageBounds = {
  model: { defaultLimit: 50, maxLimit: 500, maxBytes: 32 * 1024, maxCellCharacters: 500 },
  program: { defaultLimit: 100, maxLimit: 1000, maxBytes: 1024 * 1024, maxCellCharacters: 5000 },
} as const satisfies Readonly<Record<string, PageBounds>>;

function createCallSchema({ maxLimit, defaultLimit }: PageBounds) {
  return z.strictObject({
    alias: z.string().describe(dataParameters.readAlias),
    offset: z.int().nonnegative().max(Number.MAX_SAFE_INTEGER).optional().describe(dataParameters.readOffset),
    limit: z.int().positive().max(maxLimit).optional().describe(dataParameters.readLimit(defaultLimit)),
    columns: z.array(columnName).min(1).max(200).optional().describe(dataParameters.readColumns),
    filter: z.array(filterSchema).max(20).optional().describe(dataParameters.readFilter),
    search: z.string().max(1000).optional().describe(dataParameters.readSearch),
    sort: z
      .array(z.strictObject({ column: columnName, descending: z.boolean().optional() }))
      .max(5)
      .optional()
      .describe(dataParameters.readSort),
  });
}

export const readDataCallSchema = createCallSchema(pageBounds.model);
const callSchemas = { model: readDataCallSchema, program: createCallSchema(pageBounds.program) } as const;

type ReadDataCall = z.infer<typeof readDataCallSchema>;

export interface ReadDataOptions extends DataCallOptions {
  readonly evidence: EvidenceStore;
  readonly tables: Tables;
  /** "model": small pages of records. "program": larger pages with rows as arrays. */
  readonly reader: "model" | "program";
  /** Whether the file of an item changed since the last answer about it. */
  readonly isChanged: (item: EvidenceItem) => boolean;
}

const TOOL = "read_data";
const example = {
  alias: "sales",
  limit: 20,
  filter: [{ column: "region", op: "eq", value: "north" }],
  sort: [{ column: "amount", descending: true }],
};

/** Reads a page of rows of any alias. The filter, the search and the sort run in the sandbox of the table. */
export async function readDataPage(input: unknown, { evidence, tables, reader, isChanged, signal }: ReadDataOptions): Promise<DataAnswer> {
  const parsed = parseArguments(callSchemas[reader], input, invalidArguments(TOOL, example));
  if (!parsed.ok) return parsed;
  const call = parsed.data;
  const item = evidence.get(call.alias);
  if (item === null) return refuseUnknownAlias(TOOL, call.alias, evidence.aliases());
  const bounds = pageBounds[reader];
  try {
    const reply = await tables.query(item, toQuery(call, bounds, reader === "model"), { signal });
    if (!reply.ok) return refuseTable(TOOL, reply.refusal);
    const page = tablePageSchema.parse(JSON.parse(reply.json));
    const notes = writeNotes({ item, page, call, bounds, isChanged: isChanged(item) });
    // Add to the text of the sandbox instead of the parsed value, so that no number loses a digit.
    const alias = JSON.stringify(item.alias);
    const name = reader === "model" ? `"alias":${alias},"_contextAlias":${alias}` : `"alias":${alias}`;
    return { ok: true, json: `{${name},${reply.json.slice(1, -1)},"notes":${JSON.stringify(notes)}}` };
  } catch (error) {
    return refuseFailure(TOOL, error, signal);
  }
}

function toQuery(call: ReadDataCall, bounds: PageBounds, records: boolean): TableQuery {
  const { offset = 0, limit = bounds.defaultLimit, columns, filter, search, sort } = call;
  const { maxBytes, maxCellCharacters } = bounds;
  const rows = { offset, limit, columns, filter, search: search?.toWellFormed() || undefined, sort };
  return { ask: "page", ...rows, records, maxBytes, maxCellCharacters };
}

interface NoteFacts {
  readonly item: EvidenceItem;
  readonly page: TablePage;
  readonly call: ReadDataCall;
  readonly bounds: PageBounds;
  readonly isChanged: boolean;
}

/** Notes on how the page differs from what was requested or expected. */
function writeNotes({ item, page, call, bounds, isChanged }: NoteFacts): string[] {
  const wanted = Math.min(call.limit ?? bounds.defaultLimit, page.matched - page.offset);
  return [
    ...(isChanged ? [dataNotes.fileChanged(item.alias)] : []),
    ...(page.returned < wanted ? [dataNotes.pageCut(page.returned, wanted, bounds.maxBytes)] : []),
    ...(page.cutCells > 0 ? [dataNotes.cellsCut(page.cutCells, bounds.maxCellCharacters)] : []),
    ...(item.precisionLoss === undefined ? [] : [dataNotes.precisionLost]),
  ];
}
