import type { EvidenceFormat, EvidenceShape } from "../contract.ts";
import type { OutputPart } from "../output-part.ts";
import { clipLevels, clipValue, type ClipLimits } from "./clip-value.ts";
import { readDelimited } from "./csv-rows.ts";
import { findRows, type FoundRows } from "./find-rows.ts";
import { createReadKeys } from "./read-keys.ts";
import { renderSchema } from "./render-schema.ts";
import { summarize, SUMMARIZED_VALUES } from "./summarize.ts";
import type { Summary } from "./summary.ts";

/** All that previews of one output are made of, small whatever the output's size. Pieces are JSON texts, so that fitting them is adding up lengths. */
export interface Digest {
  readonly shape: EvidenceShape;
  /** From full to terse; empty where there is none. */
  readonly schema: readonly string[];
  /** What the schema was read from, as words. */
  readonly schemaFrom: string | null;
  /** By clip level. */
  readonly first: readonly (readonly string[])[];
  readonly last: readonly (readonly string[])[];
  /** By clip level: the value without its rows, or all of it where it has none; null where the rows are all there is. */
  readonly around: readonly string[] | null;
  /** Some number is shown rounded. */
  readonly isRounded: boolean;
  readonly ends: { readonly start: string; readonly end: string } | null;
}

const SHOWN_ROWS = 10;
const END_CHARACTERS = 4000;
/** A larger output is seen through a smaller sample: it is one in any case. */
const LARGE = 8 * 1024 * 1024;

export function digest({ format, body, value }: Pick<OutputPart, "format" | "body" | "value">): Digest {
  if (format === "json") return digestValue(value, body.length > LARGE ? SUMMARIZED_VALUES / 3 : SUMMARIZED_VALUES);
  if (format === "parquet" || format === "xlsx" || format === "bytes") return { ...nothing, shape: { ...noShape, kind: "bytes" } };
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  return format === "text" ? digestText(text) : digestTable(text, format);
}

/** Of what is not read on the host: no rows, and the schema that is known already. */
export function digestKnown(shape: EvidenceShape, schema: readonly string[]): Digest {
  return { ...nothing, shape, schema };
}

const noShape: EvidenceShape = { kind: "scalar", rows: null, columns: [], columnCount: 0, columnsFromSample: false, path: [] };
const nothing: Digest = { shape: noShape, schema: [], schemaFrom: null, first: [], last: [], around: null, isRounded: false, ends: null };

function digestValue(value: unknown, values: number): Digest {
  const readKeys = createReadKeys();
  const summary = summarize(value, readKeys, values);
  const rows = findRows(value, readKeys);
  if (rows !== null) return digestRows({ value, summary, rows });
  const around = clipLevels.map((limits) => JSON.stringify(clipValue(value, limits)));
  const isObject = summary.objects > 0;
  const shape: EvidenceShape = { ...noShape, kind: isObject ? "object" : "scalar", ...toColumns(summary) };
  return {
    ...nothing,
    shape,
    schema: renderSchema(summary),
    schemaFrom: isObject ? "the whole object" : "the value",
    around,
    isRounded: isRounded(around),
  };
}

function digestRows({ value, summary, rows }: { value: unknown; summary: Summary; rows: FoundRows }): Digest {
  const { kind, path, count, holder } = rows;
  const list = path.reduce<Summary | undefined>((at, key) => at?.fields.get(key), summary);
  const looked = list?.itemsSeen ?? 0;
  const isRoot = path.length === 0;
  const shown = showRows(rows);
  const elsewhere = { value: holder, text: `… ${count} rows, in first and last` };
  const around = isRoot ? null : clipLevels.map((limits) => JSON.stringify(clipValue(value, limits, elsewhere)));
  return {
    ...nothing,
    ...shown,
    shape: { kind, rows: count, ...toColumns(list?.items), columnsFromSample: looked < count, path },
    schema: count === 0 && isRoot ? [] : renderSchema(isRoot ? summary.items! : summary),
    schemaFrom: sayLooked(looked, count),
    around,
    isRounded: isRounded([...(shown.first[0] ?? []), ...(shown.last[0] ?? []), ...(around ?? [])]),
  };
}

function digestTable(text: string, format: EvidenceFormat): Digest {
  if (format === "jsonl") return digestLines(text);
  const { columns, count, row } = readDelimited(text, format === "tsv" ? "\t" : ",");
  const rows: FoundRows = { kind: "records", path: [], holder: columns, count, row };
  const sample = sampleRows(rows);
  const table = digestRows({ value: null, summary: summarize(sample, createReadKeys()), rows });
  return {
    ...table,
    shape: { ...table.shape, kind: "table", columns, columnCount: columns.length, columnsFromSample: false },
    schemaFrom: sayLooked(sample.length, count),
  };
}

/** Lines that cannot be read, which Python will refuse, show as null. */
function digestLines(text: string): Digest {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const row = (index: number): unknown => {
    try {
      return JSON.parse(lines[index]!);
    } catch {
      return null;
    }
  };
  const rows: FoundRows = { kind: "records", path: [], holder: lines, count: lines.length, row };
  const sample = sampleRows(rows);
  const { shape, ...rest } = digestRows({ value: null, summary: summarize(sample, createReadKeys()), rows });
  const looked = sample.length < lines.length;
  return { ...rest, shape: { ...shape, columnsFromSample: looked }, schemaFrom: sayLooked(sample.length, lines.length) };
}

function digestText(text: string): Digest {
  const lines = text === "" ? 0 : countBreaks(text) + (text.endsWith("\n") ? 0 : 1);
  const ends = { start: text.slice(0, END_CHARACTERS), end: text.slice(-END_CHARACTERS) };
  return { ...nothing, shape: { ...noShape, kind: "text", lines, characters: text.length }, ends };
}

function countBreaks(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

const SAMPLED_ROWS = 5000;

function sampleRows({ count, row }: FoundRows): unknown[] {
  const step = Math.max(1, count / SAMPLED_ROWS);
  return Array.from({ length: Math.min(count, SAMPLED_ROWS) }, (_, index) => row(Math.floor(index * step)));
}

/** Up to twenty rows are all shown as first ones. */
function showRows({ count, row }: FoundRows): Pick<Digest, "first" | "last"> {
  const isAll = count <= SHOWN_ROWS * 2;
  const first = Array.from({ length: isAll ? count : SHOWN_ROWS }, (_, index) => row(index));
  const last = Array.from({ length: isAll ? 0 : SHOWN_ROWS }, (_, index) => row(count - SHOWN_ROWS + index));
  const show = (rows: readonly unknown[], limits: ClipLimits): string[] => rows.map((value) => JSON.stringify(clipValue(value, limits)));
  return { first: clipLevels.map((limits) => show(first, limits)), last: clipLevels.map((limits) => show(last, limits)) };
}

function toColumns(summary: Summary | null | undefined): Pick<EvidenceShape, "columns" | "columnCount"> {
  if (!summary) return { columns: [], columnCount: 0 };
  return { columns: [...summary.fields.keys()], columnCount: summary.fields.size + summary.otherFields.size };
}

function sayLooked(looked: number, count: number): string {
  return looked >= count ? `all ${count} rows` : `a sample of ${looked} of ${count} rows: nulls, ranges and values are of the sample`;
}

function isRounded(texts: readonly string[]): boolean {
  return texts.some((text) => /"~-?(?:\d|Infinity)/.test(text));
}
