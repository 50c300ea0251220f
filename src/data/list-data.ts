import { z } from "zod";
import { parseArguments } from "../errors/parse-arguments.ts";
import type { EvidenceItem, EvidenceStore } from "../evidence/evidence-store.ts";
import { dataNotes, dataParameters } from "../prompts/data-tools.ts";
import type { DataAnswer, DataCallOptions, LeftOut } from "./conversation-data.ts";
import { invalidArguments, refuseFailure, refuseUnknownAlias } from "./data-errors.ts";
import type { SchemaReply, TableSchemas } from "./tables/create-table-schemas.ts";

export const listDataCallSchema = z.strictObject({
  aliases: z.array(z.string()).max(20).optional().describe(dataParameters.listAliases),
});

export interface ListDataOptions extends DataCallOptions {
  readonly evidence: EvidenceStore;
  readonly schemas: TableSchemas;
  readonly leftOut: readonly LeftOut[];
  /** Whether the file of an item changed since the last answer about it. */
  readonly isChanged: (item: EvidenceItem) => boolean;
}

/** How many files a call without `aliases` reads to compute their schemas. More would take longer than a caller waits. */
const schemasPerCall = { files: 20, bytes: 64 * 1024 * 1024 } as const;

const TOOL = "list_data";
const MAX_BYTES = 32 * 1024;
const MAX_SHOWN_COLUMNS = 60;

interface Entry {
  alias: string;
  columns: readonly unknown[] | null;
  [fact: string]: unknown;
}

/** Lists every alias with its source, size, rows and columns. Notes and `problem` say what is missing. */
export async function listData(input: unknown, { evidence, schemas, leftOut, isChanged, signal }: ListDataOptions): Promise<DataAnswer> {
  const parsed = parseArguments(listDataCallSchema, input ?? {}, invalidArguments(TOOL, { aliases: ["sales"] }));
  if (!parsed.ok) return parsed;
  const { aliases } = parsed.data;
  const unknown = aliases?.find((alias) => evidence.get(alias) === null);
  if (unknown !== undefined) return refuseUnknownAlias(TOOL, unknown, evidence.aliases());
  const isFull = aliases !== undefined; // the caller named aliases: describe their columns in full
  const items = [...new Set(aliases ?? evidence.aliases())].map((alias) => evidence.get(alias)!);
  try {
    const toDescribe = isFull ? items : items.filter(isReadInSandbox);
    const descriptions = await describeItems(toDescribe, schemas, { signal, isFull });
    const entries = items.map((item) => toEntry(item, descriptions.get(item), { isChanged, isFull }));
    return { ok: true, json: fitToLimit(entries, isFull ? [] : leftOut) };
  } catch (error) {
    return refuseFailure(TOOL, error, signal);
  }
}

/** The host reads neither files nor CSV. */
function isReadInSandbox({ file, format }: EvidenceItem): boolean {
  return file !== undefined || format === "csv" || format === "tsv";
}

/** The schema of an item, or why it is missing. */
type Description = Pick<Extract<SchemaReply, { ok: true }>, "schema"> | { readonly problem: string } | { readonly note: string };

/** Returns the schema of each item. A file that cannot be read gets a `problem` and does not affect the others. */
async function describeItems(
  items: readonly EvidenceItem[],
  schemas: TableSchemas,
  { signal, isFull }: { signal: AbortSignal | undefined; isFull: boolean },
): Promise<Map<EvidenceItem, Description>> {
  const descriptions = new Map<EvidenceItem, Description>();
  const unread: EvidenceItem[] = [];
  let bytes = 0;
  for (const item of items) {
    try {
      const known = schemas.known(item);
      if (known !== null) descriptions.set(item, toDescription(known));
      else if (isFull || (unread.length < schemasPerCall.files && bytes + item.bytes <= schemasPerCall.bytes)) {
        unread.push(item);
        bytes += item.bytes;
      } else descriptions.set(item, { note: dataNotes.notReadYet(item.alias) });
    } catch (error) {
      descriptions.set(item, toProblem(error));
    }
  }
  try {
    const replies = await schemas.describe(unread, { signal });
    for (const [index, item] of unread.entries()) descriptions.set(item, toDescription(replies[index]!));
  } catch (error) {
    signal?.throwIfAborted();
    for (const item of unread) descriptions.set(item, toProblem(error));
  }
  return descriptions;
}

function toDescription(reply: SchemaReply): Description {
  return reply.ok ? { schema: reply.schema } : { problem: reply.refusal.why };
}

function toProblem(error: unknown): Description {
  return { problem: error instanceof Error ? error.message : String(error) };
}

function toEntry(
  item: EvidenceItem,
  description: Description | undefined,
  { isChanged, isFull }: Pick<ListDataOptions, "isChanged"> & { isFull: boolean },
): Entry {
  const { alias, file, source, tool, format, bytes, partOf } = item;
  const head = { alias, _contextAlias: alias, source: file?.kind ?? source, name: tool, format, bytes, partOf };
  if (description === undefined) {
    const { rows, columns, columnCount } = item.shape;
    const shown = columns.slice(0, MAX_SHOWN_COLUMNS).map((name) => ({ name }));
    return { ...head, rows, columns: shown, ...countHidden(columnCount - shown.length) };
  }
  if (!("schema" in description)) return { ...head, rows: null, columns: null, ...description };
  const { rows, columns, columnCount, notes } = description.schema;
  const shown = isFull ? columns : columns.slice(0, MAX_SHOWN_COLUMNS).map(({ name, type }) => ({ name, type }));
  return {
    ...head,
    rows,
    columns: shown,
    ...countHidden(columnCount - shown.length),
    ...(file !== undefined && isChanged(item) && { changed: true }),
    ...(notes.length > 0 && { notes }),
  };
}

function countHidden(count: number): { columnsNotShown?: number } {
  return count > 0 ? { columnsNotShown: count } : {};
}

/** Writes the answer within MAX_BYTES. Drops the columns of the oldest entries first, then the oldest entries, and adds notes that count both. */
function fitToLimit(entries: readonly Entry[], leftOut: readonly LeftOut[]): string {
  const shownLeftOut = leftOut.slice(0, 50);
  const leftOutNotes = leftOut.length > shownLeftOut.length ? [dataNotes.morePathsLeftOut(leftOut.length - shownLeftOut.length)] : [];
  const write = (data: readonly Entry[], notes: readonly string[]): string =>
    JSON.stringify({ data, ...(shownLeftOut.length > 0 && { leftOut: shownLeftOut }), notes: [...leftOutNotes, ...notes] });
  const complete = write(entries, []);
  if (Buffer.byteLength(complete) <= MAX_BYTES) return complete;
  const bare = entries.map(({ alias, source, format, bytes, rows }): Entry => ({
    alias,
    _contextAlias: alias,
    source,
    format,
    bytes,
    rows,
    columns: null,
  }));
  const sizes = bare.map((entry) => Buffer.byteLength(JSON.stringify(entry)) + 1);
  let dropped = 0;
  let size = sizes.reduce((sum, one) => sum + one, Buffer.byteLength(write([], [])) + 400); // 400: room for the notes
  while (size > MAX_BYTES && dropped < bare.length) size -= sizes[dropped++]!;
  const shown = bare.slice(dropped);
  for (let at = shown.length - 1; at >= 0; at -= 1) {
    const full = entries[dropped + at]!;
    const grown = size + Buffer.byteLength(JSON.stringify(full)) + 1 - sizes[dropped + at]!;
    if (grown > MAX_BYTES) continue;
    shown[at] = full;
    size = grown;
  }
  const withoutColumns = shown.filter((entry, at) => entry !== entries[dropped + at]).length;
  return write(shown, [
    ...(withoutColumns > 0 ? [dataNotes.columnsNotShown(withoutColumns)] : []),
    ...(dropped > 0 ? [dataNotes.oldestNotListed(dropped)] : []),
  ]);
}
