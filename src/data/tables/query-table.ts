import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { nearestName } from "../../errors/nearest-name.ts";
import type { EvidenceFormat, EvidenceItem } from "../../evidence/evidence-store.ts";
import type { CellSession } from "../../cells/open-cell-session.ts";
import { type CellInput, toCellInput } from "../../cells/cell-inputs.ts";
import type { CellOutcome } from "../../protocol/outcome.ts";
import { toAsciiJson } from "../../text/json.ts";

const count = z.int().nonnegative();

/** A query of one table, which runs in the sandbox of the table. */
export type TableQuery =
  | { readonly ask: "schema" }
  /** The next slice of the table as a file. */
  | { readonly ask: "download"; readonly as: "csv" | "parquet"; readonly maxBytes: number }
  | {
      readonly ask: "page";
      readonly offset: number;
      readonly limit: number;
      readonly maxBytes: number;
      readonly maxCellCharacters: number;
      readonly records: boolean;
      readonly columns?: readonly string[] | undefined;
      readonly filter?: readonly { readonly column: string; readonly op: string; readonly value?: unknown }[] | undefined;
      readonly search?: string | undefined;
      readonly sort?: readonly { readonly column: string; readonly descending?: boolean | undefined }[] | undefined;
    };

/** A page of rows, as the sandbox returns it. */
export const tablePageSchema = z.strictObject({
  columns: z.array(z.string()),
  rows: z.array(z.unknown()),
  offset: count,
  returned: count,
  total: count,
  matched: count,
  nextOffset: count.nullable(),
  cutCells: count,
});

export type TablePage = z.infer<typeof tablePageSchema>;

/** `json` is the reply exactly as the sandbox wrote it. After a `lost` reply the sandbox cannot be used any more. */
export type TableReply =
  | { readonly ok: true; readonly json: string; readonly version?: string }
  | { readonly ok: false; readonly refusal: TableRefusal; readonly lost: boolean; readonly version?: string };

export interface TableRefusal {
  readonly code:
    | "DATA_UNREADABLE"
    | "COLUMN_UNKNOWN"
    | "FILTER_VALUE_INVALID"
    | "PYTHON_OUT_OF_MEMORY"
    | "PYTHON_TIMEOUT"
    | "SANDBOX_LOST"
    | "INTERNAL_ERROR";
  readonly why: string;
  readonly hints: readonly string[];
}

const refusedSchema = z.object({
  refused: z.discriminatedUnion("code", [
    z.object({ code: z.literal("unreadable"), why: z.string() }),
    z.object({ code: z.literal("bytes") }),
    z.object({ code: z.literal("wide"), columns: z.int(), most: z.int() }),
    z.object({ code: z.literal("column"), column: z.string(), columns: z.array(z.string()) }),
    z.object({ code: z.literal("text"), column: z.string(), value: z.string(), example: z.string() }),
    z.object({ code: z.literal("value"), column: z.string(), type: z.string(), value: z.string() }),
  ]),
});

/** A table that can be queried: an alias, or a table of a dataset. */
export interface QueriedTable {
  readonly alias: string;
  readonly format: EvidenceFormat;
  /** Keys that lead from the root of the value to its rows. */
  readonly path: readonly string[];
  readonly input: () => CellInput;
}

export interface TableSandbox {
  readonly cellSession: Promise<CellSession>;
  /** The aliases that are bound in the sandbox. */
  readonly bound: Set<string>;
}

export function toQueriedTable(item: EvidenceItem): QueriedTable {
  const { alias, format, file } = item;
  // For tool outputs, the host knows where the rows are. A file is first parsed in the sandbox, so its path is unknown.
  return { alias, format, path: file === undefined ? item.shape.path : [], input: () => toCellInput(item) };
}

/** Runs a query. Binds the table before the first one. Checks every reply, because a sandbox is not trusted. */
export async function queryTable(sandbox: TableSandbox, table: QueriedTable, query: TableQuery): Promise<TableReply> {
  const cellSession = await sandbox.cellSession;
  if (!sandbox.bound.has(table.alias)) {
    cellSession.bind(table.alias, table.input());
    sandbox.bound.add(table.alias);
  }
  const outcome = await cellSession.run({ code: toCode(table, query), isQuery: true });
  if (outcome.status !== "ok" || outcome.resultJson === null) return { ok: false, refusal: fromOutcome(table, outcome), lost: true };
  const json: unknown = JSON.parse(outcome.resultJson);
  if (typeof json !== "string" || !/^\{".*\}$/s.test(json))
    return { ok: false, refusal: failed(table, "the reply is not valid"), lost: true };
  if (!json.startsWith('{"refused":')) return { ok: true, json };
  const refused = refusedSchema.safeParse(JSON.parse(json));
  return {
    ok: false,
    refusal: refused.success ? fromRefused(table, refused.data.refused) : failed(table, json.slice(0, 200)),
    lost: false,
  };
}

const directory = join(import.meta.dirname, "..", "..", "..", "python", "sluice_tables");
const read = (name: string): string => readFileSync(join(directory, `${name}.py`), "utf8");
const askModule = read("ask");
/** In import order: each module comes after the modules that it imports. */
const modules = {
  sluice_tables: read("__init__"),
  "sluice_tables.values": read("values"),
  "sluice_tables.frames": read("frames"),
  "sluice_tables.files": read("files"),
  "sluice_tables.table": read("table"),
};

/** Returns the code of a cell that runs a query. It parses the table if the sandbox has not done so yet. Its result is JSON text in a string. */
function toCode({ alias, path }: QueriedTable, query: TableQuery): string {
  // ASCII JSON inside a JSON string literal is also a valid Python literal.
  return `_asked = ${JSON.stringify(toAsciiJson({ alias, path, question: query, modules }))}\n${askModule}`;
}

function fromRefused({ alias, format }: QueriedTable, refused: z.infer<typeof refusedSchema>["refused"]): TableRefusal {
  switch (refused.code) {
    case "unreadable":
      return unreadable(alias, refused.why);
    case "bytes":
      return { code: "DATA_UNREADABLE", why: `${alias} contains bytes (${format}), not rows.`, hints: ["Read it with code_interpreter."] };
    case "wide":
      return {
        code: "DATA_UNREADABLE",
        why: `it has ${refused.columns} columns; a CSV file can have at most ${refused.most}.`,
        hints: ["Download it as JSON."],
      };
    case "column": {
      const near = nearestName(refused.column, refused.columns);
      const suggestion = near === null ? "" : ` Did you mean ${JSON.stringify(near)}?`;
      const listed = `${refused.columns.slice(0, 40).join(", ") || "none"}${refused.columns.length > 40 ? " …" : ""}`;
      return {
        code: "COLUMN_UNKNOWN",
        why: `${alias} has no column ${JSON.stringify(refused.column)}.${suggestion} Columns: ${listed}.`,
        hints: [],
      };
    }
    case "text": {
      const example = refused.example === "" ? "" : `, for example ${JSON.stringify(refused.example)}`;
      return {
        code: "FILTER_VALUE_INVALID",
        why: `The column ${refused.column} of ${alias} is text${example}, so it cannot be compared with the number ${refused.value}.`,
        hints: [
          "Convert the column to numbers with code_interpreter, or fix its cells; the notes of its schema say which are not numbers.",
          "To compare text, use eq with the text, contains or startsWith.",
        ],
      };
    }
    case "value":
      return {
        code: "FILTER_VALUE_INVALID",
        why: `The column ${refused.column} of ${alias} has values of type ${refused.type}, which cannot be compared with ${JSON.stringify(refused.value)}.`,
        hints: ["Use a value of that type, or the op contains, which compares text."],
      };
  }
}

function unreadable(alias: string, why: string): TableRefusal {
  if (/out of memory|unable to allocate|: $/i.test(why)) return outOfMemory(alias, why);
  return {
    code: "DATA_UNREADABLE",
    why: `Cannot read ${alias}: ${why.replace(/(?<![\s.])[\s.]+$/, "")}.`,
    hints: ["Fix the file, or store its readable part under another name with store_data."],
  };
}

function outOfMemory(alias: string, why: string): TableRefusal {
  return {
    code: "PYTHON_OUT_OF_MEMORY",
    why: `${alias} does not fit into the memory of a sandbox: ${why}`,
    hints: ["Raise limits.sandbox.memoryBytes to about five times the size of the data, or convert the table to Parquet."],
  };
}

function fromOutcome(table: QueriedTable, { status, error }: CellOutcome): TableRefusal {
  const why = error === undefined ? status : error.message;
  if (status === "out_of_memory") return outOfMemory(table.alias, why);
  if (status === "timeout") {
    const hints = ["Raise limits.sandbox.cellTimeoutMs, or convert the table to Parquet."];
    return { code: "PYTHON_TIMEOUT", why: `Reading ${table.alias} took too long: ${why}`, hints };
  }
  if (status === "sandbox_lost") return { code: "SANDBOX_LOST", why: `The sandbox of ${table.alias} died: ${why}`, hints: ["Call again."] };
  return failed(table, why);
}

function failed({ alias }: QueriedTable, why: string): TableRefusal {
  return { code: "INTERNAL_ERROR", why: `Querying ${alias} failed: ${why}`, hints: [] };
}
