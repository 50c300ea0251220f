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

/** One question to a table in its sandbox. */
export type TableQuestion =
  | { readonly ask: "schema" }
  /** The next piece of the table as a file. */
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

/** The facts of a page. */
export const pageFactsSchema = z.strictObject({
  columns: z.array(z.string()),
  rows: z.array(z.unknown()),
  offset: count,
  returned: count,
  total: count,
  matched: count,
  nextOffset: count.nullable(),
  cutCells: count,
});

export type PageFacts = z.infer<typeof pageFactsSchema>;

/** `json`: the answer, as the sandbox wrote it. A refusal is the data's or the question's fault; `lost` says that the sandbox went with it. */
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
    z.object({ code: z.literal("value"), column: z.string(), type: z.string(), value: z.string() }),
  ]),
});

/** What can be asked: an alias, or a table that only looks like one. */
export interface AskedTable {
  readonly alias: string;
  readonly format: EvidenceFormat;
  /** Keys from the root of the value to its rows. */
  readonly path: readonly string[];
  readonly input: () => CellInput;
}

export interface TableSandbox {
  readonly session: Promise<CellSession>;
  /** What it was given, by alias. */
  readonly bound: Set<string>;
}

export function toAskedTable(item: EvidenceItem): AskedTable {
  const { alias, format, file } = item;
  // The host knows where the rows are in what it has read itself.
  return { alias, format, path: file === undefined ? item.shape.path : [], input: () => toCellInput(item) };
}

/** Binds the table on the first question. Whatever it says is checked: it comes out of a sandbox. */
export async function askTable(place: TableSandbox, table: AskedTable, question: TableQuestion): Promise<TableReply> {
  const session = await place.session;
  if (!place.bound.has(table.alias)) {
    session.bind(table.alias, table.input());
    place.bound.add(table.alias);
  }
  const outcome = await session.run({ code: toCode(table, question), isQuery: true });
  if (outcome.status !== "ok" || outcome.resultJson === null) return { ok: false, refusal: fromOutcome(table, outcome), lost: true };
  const json: unknown = JSON.parse(outcome.resultJson);
  if (typeof json !== "string" || !/^\{".*\}$/s.test(json))
    return { ok: false, refusal: notAnswered(table, "what came back is no answer"), lost: true };
  if (!json.startsWith('{"refused":')) return { ok: true, json };
  const refused = refusedSchema.safeParse(JSON.parse(json));
  return {
    ok: false,
    refusal: refused.success ? fromRefused(table, refused.data.refused) : notAnswered(table, json.slice(0, 200)),
    lost: false,
  };
}

const directory = join(import.meta.dirname, "..", "..", "..", "python", "sluice_tables");
const read = (name: string): string => readFileSync(join(directory, `${name}.py`), "utf8");
const ask = read("ask");
/** Each comes after those that it imports. */
const modules = {
  sluice_tables: read("__init__"),
  "sluice_tables.values": read("values"),
  "sluice_tables.frames": read("frames"),
  "sluice_tables.files": read("files"),
  "sluice_tables.table": read("table"),
};

/** A cell that answers a question; it parses the table first when this sandbox has not done so yet. The answer is a text that is JSON itself. */
function toCode({ alias, path }: { readonly alias: string; readonly path: readonly string[] }, question: TableQuestion): string {
  // JSON in ASCII, as a string: it means the same in both languages.
  return `_asked = ${JSON.stringify(toAsciiJson({ alias, path, question, modules }))}\n${ask}`;
}

function fromRefused({ alias, format }: AskedTable, refused: z.infer<typeof refusedSchema>["refused"]): TableRefusal {
  switch (refused.code) {
    case "unreadable":
      return unreadable(alias, refused.why);
    case "bytes":
      return { code: "DATA_UNREADABLE", why: `${alias} holds bytes (${format}) and no rows.`, hints: ["Read it in code_interpreter."] };
    case "wide":
      return {
        code: "DATA_UNREADABLE",
        why: `it has ${refused.columns} columns, a CSV has at most ${refused.most}.`,
        hints: ["Take it as JSON."],
      };
    case "column": {
      const near = nearestName(refused.column, refused.columns);
      const meant = near === null ? "" : ` Did you mean ${JSON.stringify(near)}?`;
      const there = `${refused.columns.slice(0, 40).join(", ") || "none"}${refused.columns.length > 40 ? " …" : ""}`;
      return {
        code: "COLUMN_UNKNOWN",
        why: `${alias} has no column ${JSON.stringify(refused.column)}.${meant} There are: ${there}.`,
        hints: [],
      };
    }
    case "value":
      return {
        code: "FILTER_VALUE_INVALID",
        why: `The column ${refused.column} of ${alias} holds values of type ${refused.type}; ${JSON.stringify(refused.value)} cannot be compared with them.`,
        hints: ["Give a value of that type, or use the op contains, which compares texts."],
      };
  }
}

function unreadable(alias: string, why: string): TableRefusal {
  if (/out of memory|unable to allocate|: $/i.test(why)) return noMemory(alias, why);
  return {
    code: "DATA_UNREADABLE",
    why: `${alias} cannot be read: ${why.replace(/[\s.]+$/, "")}.`,
    hints: ["Mend the file, or store what can be read of it under another name with store_data."],
  };
}

function noMemory(alias: string, why: string): TableRefusal {
  return {
    code: "PYTHON_OUT_OF_MEMORY",
    why: `${alias} does not fit the memory of a sandbox: ${why}`,
    hints: ["Raise limits.sandbox.memoryBytes to about five times the size of the data, or give the table as Parquet."],
  };
}

function fromOutcome(table: AskedTable, { status, error }: CellOutcome): TableRefusal {
  const why = error === undefined ? status : error.message;
  if (status === "out_of_memory") return noMemory(table.alias, why);
  if (status === "timeout") {
    const hints = ["Raise limits.sandbox.cellTimeoutMs, or give the table as Parquet."];
    return { code: "PYTHON_TIMEOUT", why: `${table.alias} could not be read in time: ${why}`, hints };
  }
  if (status === "sandbox_lost")
    return { code: "SANDBOX_LOST", why: `The sandbox of ${table.alias} is gone: ${why}`, hints: ["Ask again."] };
  return notAnswered(table, why);
}

function notAnswered({ alias }: AskedTable, why: string): TableRefusal {
  return { code: "INTERNAL_ERROR", why: `${alias} could not be asked: ${why}`, hints: [] };
}
