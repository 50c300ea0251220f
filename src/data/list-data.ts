import { parseArguments } from "../errors/parse-arguments.ts";
import type { EvidenceItem, EvidenceStore } from "../evidence/evidence-store.ts";
import type { DataAnswer, DataCallOptions, LeftOut } from "./conversation-data.ts";
import { listDataCallSchema } from "./data-call-schemas.ts";
import { failed, refusal, unknownAlias } from "./data-errors.ts";
import type { ColumnFacts, SchemaReply, TableSchemas } from "./tables/create-table-schemas.ts";

export interface ListDataOptions extends DataCallOptions {
  readonly evidence: EvidenceStore;
  readonly schemas: TableSchemas;
  readonly leftOut: readonly LeftOut[];
  readonly isChanged: (item: EvidenceItem) => boolean;
}

/** Files whose schemas one call works out by itself; more of them take longer than a caller waits. */
const describedAtOnce = { files: 20, bytes: 64 * 1024 * 1024 } as const;

const TOOL = "list_data";
const MAX_BYTES = 32 * 1024;
const SHOWN_COLUMNS = 60;

interface Entry {
  alias: string;
  columns: readonly unknown[] | null;
  [fact: string]: unknown;
}

/** Every alias with where it is from, its size, rows and columns. What could not be said is said to be missing. */
export async function listData(input: unknown, { evidence, schemas, leftOut, isChanged, signal }: ListDataOptions): Promise<DataAnswer> {
  const parsed = parseArguments(listDataCallSchema, input ?? {}, refusal(TOOL, { aliases: ["sales"] }));
  if (!parsed.ok) return parsed;
  const { aliases } = parsed.data;
  const missing = aliases?.find((alias) => evidence.get(alias) === null);
  if (missing !== undefined) return unknownAlias(TOOL, missing, evidence.aliases());
  const items = [...new Set(aliases ?? evidence.aliases())].map((alias) => evidence.get(alias)!);
  try {
    const described = await describeFiles(aliases === undefined ? items.filter(({ file }) => file !== undefined) : items, schemas, {
      signal,
      all: aliases !== undefined,
    });
    const entries = items.map((item) => toEntry({ item, known: described.get(item), isChanged, isFull: aliases !== undefined }));
    return { ok: true, json: fit(entries, aliases === undefined ? leftOut : []) };
  } catch (error) {
    return failed(TOOL, error, signal);
  }
}

type Known = SchemaReply | { readonly ok: false; readonly problem: string } | { readonly ok: false; readonly note: string };

/** A file that cannot be read says so for itself; the others are described all the same. */
async function describeFiles(
  items: readonly EvidenceItem[],
  schemas: TableSchemas,
  { signal, all }: { signal: AbortSignal | undefined; all: boolean },
): Promise<Map<EvidenceItem, Known>> {
  const found = new Map<EvidenceItem, Known>();
  const asked: EvidenceItem[] = [];
  let bytes = 0;
  for (const item of items) {
    try {
      const known = schemas.known(item);
      if (known !== null) found.set(item, known);
      else if (all || (asked.length < describedAtOnce.files && bytes + item.bytes <= describedAtOnce.bytes)) {
        asked.push(item);
        bytes += item.bytes;
      } else found.set(item, { ok: false, note: `Not read yet: list_data {"aliases": ["${item.alias}"]} says its columns.` });
    } catch (error) {
      found.set(item, { ok: false, problem: error instanceof Error ? error.message : String(error) });
    }
  }
  try {
    const replies = await schemas.describe(asked, { signal });
    for (const [index, item] of asked.entries()) found.set(item, replies[index]!);
  } catch (error) {
    signal?.throwIfAborted();
    for (const item of asked) found.set(item, { ok: false, problem: error instanceof Error ? error.message : String(error) });
  }
  return found;
}

interface Described {
  readonly item: EvidenceItem;
  readonly known: Known | undefined;
  readonly isChanged: (item: EvidenceItem) => boolean;
  readonly isFull: boolean;
}

function toEntry({ item, known, isChanged, isFull }: Described): Entry {
  const { alias, file, source, tool, format, bytes, partOf } = item;
  const head = { alias, source: file?.kind ?? source, name: tool, format, bytes, ...(partOf === undefined ? {} : { partOf }) };
  const changed = file !== undefined && known?.ok === true && isChanged(item) ? { changed: true } : {};
  if (known !== undefined && !known.ok) {
    const said = "refusal" in known ? { problem: known.refusal.why } : "note" in known ? { note: known.note } : { problem: known.problem };
    return { ...head, rows: null, columns: null, ...said };
  }
  if (known !== undefined) {
    const { rows, columns, columnCount, notes } = known.schema;
    const shown = isFull ? columns : columns.slice(0, SHOWN_COLUMNS).map(({ name, type }: ColumnFacts) => ({ name, type }));
    return { ...head, rows, columns: shown, ...moreColumns(columnCount - shown.length), ...changed, ...(notes.length > 0 && { notes }) };
  }
  const { rows, columns, columnCount } = item.shape;
  const shown = columns.slice(0, SHOWN_COLUMNS).map((name) => ({ name }));
  return { ...head, rows, columns: shown, ...moreColumns(columnCount - shown.length) };
}

function moreColumns(count: number): { columnsNotShown?: number } {
  return count > 0 ? { columnsNotShown: count } : {};
}

/** When it is too much, the columns of the oldest go first, then the oldest themselves; both are counted. */
function fit(entries: readonly Entry[], leftOut: readonly LeftOut[]): string {
  const left = leftOut.slice(0, 50);
  const notes = leftOut.length > left.length ? [`${leftOut.length - left.length} more places were left out.`] : [];
  const write = (data: readonly Entry[], more: readonly string[]): string =>
    JSON.stringify({ data, ...(left.length > 0 && { leftOut: left }), notes: [...notes, ...more] });
  const whole = write(entries, []);
  if (Buffer.byteLength(whole) <= MAX_BYTES) return whole;
  const bare = entries.map(({ alias, source, format, bytes, rows }): Entry => ({ alias, source, format, bytes, rows, columns: null }));
  const sizes = bare.map((entry) => Buffer.byteLength(JSON.stringify(entry)) + 1);
  let from = 0;
  let size = sizes.reduce((sum, one) => sum + one, Buffer.byteLength(write([], [])) + 400);
  while (size > MAX_BYTES && from < bare.length) size -= sizes[from++]!;
  const shown = bare.slice(from);
  for (let at = shown.length - 1; at >= 0; at -= 1) {
    const full = entries[from + at]!;
    const grown = size + Buffer.byteLength(JSON.stringify(full)) + 1 - sizes[from + at]!;
    if (grown > MAX_BYTES) continue;
    shown[at] = full;
    size = grown;
  }
  const cut = shown.filter((entry, at) => entry !== entries[from + at]).length;
  return write(shown, [
    ...(cut > 0 ? [`The columns of ${cut} alias(es) are not shown here: list_data {"aliases": […]} says them.`] : []),
    ...(from > 0 ? [`The ${from} oldest aliases are not listed here; they are there all the same.`] : []),
  ]);
}
