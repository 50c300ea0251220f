import { z } from "zod";
import { nearestName } from "../../errors/nearest-name.ts";
import type { EvidenceFormat, EvidenceItem } from "../../evidence/contract.ts";
import type { Session } from "../../interpreter/open-session.ts";
import type { SessionInput } from "../../interpreter/session-inputs.ts";
import { toSessionInput } from "../../interpreter/to-session-input.ts";
import type { CellOutcome } from "../../protocol/outcome.ts";
import { toCode, type TableQuestion } from "./table-code.ts";

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
  readonly input: () => SessionInput;
}

export interface TableSandbox {
  readonly session: Promise<Session>;
  /** What it was given, by alias. */
  readonly bound: Set<string>;
}

export function toAskedTable(item: EvidenceItem): AskedTable {
  const { alias, format, file } = item;
  // The host knows where the rows are in what it has read itself.
  return { alias, format, path: file === undefined ? item.shape.path : [], input: () => toSessionInput(item) };
}

/** Binds the table on the first question. Whatever it says is checked: it comes out of a sandbox. */
export async function askTable(place: TableSandbox, table: AskedTable, question: TableQuestion): Promise<TableReply> {
  const session = await place.session;
  if (!place.bound.has(table.alias)) {
    session.bind(table.alias, table.input());
    place.bound.add(table.alias);
  }
  const outcome = await session.run({ code: toCode(table, question), isQuestion: true });
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

function fromRefused({ alias, format }: AskedTable, refused: z.infer<typeof refusedSchema>["refused"]): TableRefusal {
  switch (refused.code) {
    case "unreadable":
      return unreadable(alias, refused.why);
    case "bytes":
      return { code: "DATA_UNREADABLE", why: `${alias} holds bytes (${format}) and no rows.`, hints: ["Read it in code_interpreter."] };
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
  if (status === "timeout") return { code: "PYTHON_TIMEOUT", why: `${table.alias} could not be read in time: ${why}`, hints: [] };
  if (status === "sandbox_lost")
    return { code: "SANDBOX_LOST", why: `The sandbox of ${table.alias} is gone: ${why}`, hints: ["Ask again."] };
  return notAnswered(table, why);
}

function notAnswered({ alias }: AskedTable, why: string): TableRefusal {
  return { code: "INTERNAL_ERROR", why: `${alias} could not be asked: ${why}`, hints: [] };
}
