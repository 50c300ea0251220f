import type { EvidenceShape, FileContent } from "../evidence-store.ts";
import type { OutputPart } from "../output-part.ts";
import { endOf, startOf } from "../../text/clip-text.ts";
import { parseJson } from "../../text/json.ts";
import { createReadKeys, findRows, type FoundRows } from "./find-rows.ts";
import { outlineSchema } from "./outline-schema.ts";
import { outlineValue, type Outline } from "./outline.ts";
import { summarize, SUMMARIZED_VALUES, type Summary } from "./summarize.ts";

/** The facts that previews of one output are built from. Small for any output, and plain data, so that a worker thread can send it. */
export interface Digest {
  readonly shape: EvidenceShape;
  readonly schema: Outline | null;
  /** What the schema was read from, for example "all 20 rows". */
  readonly schemaFrom: string | null;
  /** How a CSV-like file was read, where that was not obvious. */
  readonly readAs: readonly string[];
  /** The first and last rows; all rows if there are few. */
  readonly rows: readonly Outline[];
  /** The value without its rows, or the whole value if it has none. Null if the value consists of rows. */
  readonly around: Outline | null;
  /** Whether some number is shown rounded. */
  readonly isRounded: boolean;
  /** Start and end of a text. */
  readonly ends: { readonly start: string; readonly end: string } | null;
}

/** Number of rows kept from each end. */
export const SHOWN_ROWS = 10;
const END_CHARACTERS = 4000;
/** Larger outputs are summarized from a smaller sample. */
const LARGE_BYTES = 8 * 1024 * 1024;

export function digest({ format, body, value }: Pick<OutputPart, "format" | "body" | "value">): Digest {
  if (format === "json") return digestValue(value, body.length > LARGE_BYTES ? SUMMARIZED_VALUES / 3 : SUMMARIZED_VALUES);
  if (format === "parquet" || format === "xlsx" || format === "bytes") return { ...emptyDigest, shape: { ...emptyShape, kind: "bytes" } };
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  if (format === "jsonl") return digestSample(readLines(text));
  const digested = digestText(text);
  // CSV is shown as text: only a sandbox recognizes delimiters, decimal commas and encodings, for every use alike.
  return format === "text" ? digested : { ...digested, shape: { ...digested.shape, kind: "table" } };
}

/** The digest of a file, which the host does not read: no rows, only the schema that a sandbox found, from full to short. */
export function digestFile({ shape, schema, reading }: Pick<FileContent, "shape" | "schema" | "reading">): Digest {
  const [shortest, ...others] = schema.toReversed();
  const readAs = (reading?.notes ?? []).map(({ message }) => message);
  return { ...emptyDigest, shape, readAs, schema: shortest === undefined ? null : { texts: [shortest, ...others] } };
}

const emptyShape: EvidenceShape = { kind: "scalar", rows: null, columns: [], columnCount: 0, columnsFromSample: false, path: [] };
const emptyDigest: Digest = {
  shape: emptyShape,
  schema: null,
  schemaFrom: null,
  readAs: [],
  rows: [],
  around: null,
  isRounded: false,
  ends: null,
};

function digestValue(value: unknown, values: number): Digest {
  const readKeys = createReadKeys();
  const summary = summarize(value, readKeys, values);
  const rows = findRows(value, readKeys);
  if (rows !== null) return digestRows({ value, summary, rows });
  const isObject = summary.objects > 0;
  const around = outlineValue(value);
  return {
    ...emptyDigest,
    shape: { ...emptyShape, kind: isObject ? "object" : "scalar", ...toColumns(summary) },
    schema: outlineSchema(summary),
    schemaFrom: isObject ? "the whole object" : "the value",
    around,
    isRounded: hasRounded(around),
  };
}

function digestRows({ value, summary, rows }: { value: unknown; summary: Summary; rows: FoundRows }): Digest {
  const { kind, path, count, holder, row } = rows;
  const list = path.reduce<Summary | undefined>((at, key) => at?.fields.get(key), summary);
  const sampledRows = list?.itemsSeen ?? 0;
  const isRoot = path.length === 0;
  const around = isRoot ? null : outlineValue(value, { value: holder, text: `… ${count} rows, in first and last` });
  const shown = Array.from({ length: Math.min(count, SHOWN_ROWS * 2) }, (_, index) =>
    outlineValue(row(index < SHOWN_ROWS ? index : index + Math.max(0, count - SHOWN_ROWS * 2))),
  );
  return {
    ...emptyDigest,
    shape: { kind, rows: count, ...toColumns(list?.items), columnsFromSample: sampledRows < count, path },
    schema: count === 0 && isRoot ? null : outlineSchema(isRoot ? summary.items! : summary),
    schemaFrom: describeSample(sampledRows, count),
    rows: shown,
    around,
    isRounded: [...shown, ...(around === null ? [] : [around])].some(hasRounded),
  };
}

/** Invalid lines, which Python will refuse, are shown as null. */
function readLines(text: string): FoundRows {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return { kind: "records", path: [], holder: lines, count: lines.length, row: (index) => parseJson(lines[index]!) ?? null };
}

const SAMPLED_ROWS = 5000;

function digestSample(rows: FoundRows): Digest {
  const { count, row } = rows;
  const step = Math.max(1, count / SAMPLED_ROWS);
  const sample = Array.from({ length: Math.min(count, SAMPLED_ROWS) }, (_, index) => row(Math.floor(index * step)));
  const { shape, ...rest } = digestRows({ value: null, summary: summarize(sample, createReadKeys()), rows });
  const columnsFromSample = sample.length < count;
  return { ...rest, shape: { ...shape, columnsFromSample }, schemaFrom: describeSample(sample.length, count) };
}

function digestText(text: string): Digest {
  const lines = text === "" ? 0 : countNewlines(text) + (text.endsWith("\n") ? 0 : 1);
  const ends = { start: startOf(text, END_CHARACTERS), end: endOf(text, END_CHARACTERS) };
  return { ...emptyDigest, shape: { ...emptyShape, kind: "text", lines, characters: text.length }, ends };
}

function countNewlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

function toColumns(summary: Summary | null | undefined): Pick<EvidenceShape, "columns" | "columnCount"> {
  if (!summary) return { columns: [], columnCount: 0 };
  return { columns: [...summary.fields.keys()], columnCount: summary.fields.size + summary.otherFields.size };
}

function describeSample(sampled: number, count: number): string {
  return sampled >= count ? `all ${count} rows` : `a sample of ${sampled} of ${count} rows: nulls, ranges and values are of the sample`;
}

function hasRounded({ texts, members }: Outline): boolean {
  return /^"~-?(?:\d|Infinity)/.test(texts.at(-1)!) || (members?.shown.some(([, value]) => hasRounded(value)) ?? false);
}
