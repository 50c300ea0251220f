import { parseArguments } from "../errors/parse-arguments.ts";
import type { EvidenceItem, EvidenceStore } from "../evidence/evidence-store.ts";
import type { DataAnswer, DataCallOptions } from "./conversation-data.ts";
import { modelPage, pageCallSchema, programPage, readDataCallSchema, type PageBounds, type ReadDataCall } from "./data-call-schemas.ts";
import { failed, refusal, refusedTable, unknownAlias } from "./data-errors.ts";
import type { Tables } from "./tables/create-tables.ts";
import { pageFactsSchema, type PageFacts } from "./tables/ask-table.ts";

export interface ReadDataOptions extends DataCallOptions {
  readonly evidence: EvidenceStore;
  readonly tables: Tables;
  /** "model": small pages of records. "program": larger ones, rows as arrays. */
  readonly reader: "model" | "program";
  /** Whether the alias is another than was told before. */
  readonly isChanged: (item: EvidenceItem) => boolean;
}

const TOOL = "read_data";
const example = {
  alias: "sales",
  limit: 20,
  filter: [{ column: "region", op: "eq", value: "north" }],
  sort: [{ column: "amount", descending: true }],
};

/** A page of rows of any alias, worked out in the table's sandbox. */
export async function readData(input: unknown, { evidence, tables, reader, isChanged, signal }: ReadDataOptions): Promise<DataAnswer> {
  const schema = reader === "model" ? readDataCallSchema : pageCallSchema;
  const parsed = parseArguments(schema, input, refusal(TOOL, example));
  if (!parsed.ok) return parsed;
  const call = parsed.data;
  const item = evidence.get(call.alias);
  if (item === null) return unknownAlias(TOOL, call.alias, evidence.aliases());
  const bounds = reader === "model" ? modelPage : programPage;
  try {
    const reply = await tables.ask(item, toQuestion(call, bounds, reader === "model"), { signal });
    if (!reply.ok) return refusedTable(TOOL, reply.refusal);
    const facts = pageFactsSchema.parse(JSON.parse(reply.json));
    return { ok: true, json: addNotes(item, reply.json, toNotes({ item, facts, call, bounds, changed: isChanged(item) })) };
  } catch (error) {
    return failed(TOOL, error, signal);
  }
}

function toQuestion(call: ReadDataCall, bounds: PageBounds, records: boolean): Parameters<Tables["ask"]>[1] {
  const { offset = 0, limit = bounds.limit, columns, filter, search, sort } = call;
  const { maxBytes, maxCellCharacters } = bounds;
  const rows = { offset, limit, columns, filter, search: search?.toWellFormed() || undefined, sort };
  return { ask: "page", ...rows, records, maxBytes, maxCellCharacters };
}

interface Noted {
  readonly item: EvidenceItem;
  readonly facts: PageFacts;
  readonly call: ReadDataCall;
  readonly bounds: PageBounds;
  readonly changed: boolean;
}

/** What is not as it was asked, in words. */
function toNotes({ item, facts, call, bounds, changed }: Noted): string[] {
  const wanted = Math.min(call.limit ?? bounds.limit, facts.matched - facts.offset);
  const notes: string[] = [];
  if (changed)
    notes.push(`The file of ${item.alias} changed on disk since you last read it: earlier pages and results are of its old content.`);
  if (facts.returned < wanted)
    notes.push(
      `${facts.returned} of the ${wanted} rows asked for fit ${bounds.maxBytes} bytes: go on at nextOffset, or ask for fewer columns.`,
    );
  if (facts.cutCells > 0)
    notes.push(`${facts.cutCells} cell(s) are longer than ${bounds.maxCellCharacters} characters and cut here; Python has them whole.`);
  if (item.precisionLoss !== undefined) notes.push("Numbers of this output may have been rounded before they reached us.");
  return notes;
}

/** Around the sandbox's own text, so that every digit stays. */
function addNotes({ alias }: EvidenceItem, json: string, notes: readonly string[]): string {
  return `{"alias":${JSON.stringify(alias)},${json.slice(1, -1)},"notes":${JSON.stringify(notes)}}`;
}
