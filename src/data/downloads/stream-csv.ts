import { setImmediate as nextTick } from "node:timers/promises";
import { SluiceError } from "../../errors/sluice-error.ts";
import type { EvidenceFormat } from "../../evidence/contract.ts";
import { readCsvRows } from "../../evidence/dataset/read-csv-rows.ts";
import { readRows, type CsvCell } from "../../evidence/dataset/read-rows.ts";
import { toLine } from "../../evidence/dataset/to-csv.ts";

export interface CsvSource {
  readonly format: EvidenceFormat;
  /** Keys from the root of the value to its rows. */
  readonly path: readonly string[];
}

/** JSON is parsed as a whole, which takes many times its size and holds up whoever shares the thread; what is larger is left to a sandbox. */
const MAX_JSON_BYTES = 4 * 1024 * 1024;
/** As many as a spreadsheet has. Every row has a cell for each: rows with keys of their own would never end. */
const MAX_COLUMNS = 16_384;
const PIECE_BYTES = 1 << 20;
const CHUNK_CHARACTERS = 256 * 1024;

/** Whether the host can write it as it goes: CSV of any size, and JSON that is small. */
export function canStreamCsv(bytes: number, { format }: Pick<CsvSource, "format">): boolean {
  return format === "csv" || format === "tsv" || ((format === "json" || format === "jsonl") && bytes <= MAX_JSON_BYTES);
}

/**
 * A table as CSV, UTF-8, one header line, as it is read. Numbers stand there with the digits that were sent. Text that a spreadsheet would take for a
 * formula is prefixed with `'`; numbers never are. Whoever takes it slowly holds nothing up: the next piece is made when it is asked for.
 */
export async function* streamCsv(bytes: Uint8Array, source: CsvSource): AsyncGenerator<Uint8Array> {
  let chunk = "";
  for (const line of toLines(bytes, source)) {
    chunk += line;
    if (chunk.length < CHUNK_CHARACTERS) continue;
    yield Buffer.from(chunk);
    chunk = "";
    await nextTick(); // others get their turn
  }
  if (chunk !== "") yield Buffer.from(chunk);
}

function* toLines(bytes: Uint8Array, { format, path }: CsvSource): Generator<string> {
  if (format === "csv" || format === "tsv") {
    for (const row of readCsvRows(decode(bytes), format === "csv" ? "," : "\t")) yield toLine(row.map(asText));
    return;
  }
  const rows = readRows(bytes, { format, path }) ?? [];
  const names = new Set<string>();
  for (const row of rows) for (const name of row.keys()) names.add(name);
  if (names.size > MAX_COLUMNS) throw tooWide(names.size);
  yield toLine([...names].map(asText));
  for (const row of rows) yield toLine([...names].map((name) => row.get(name) ?? nothing));
}

function tooWide(seen: number): SluiceError {
  return new SluiceError({
    code: "CSV_NOT_MADE",
    message: `The table has ${seen} columns, a CSV has at most ${MAX_COLUMNS}.`,
    hint: "Take it as JSON.",
    details: { seen, allowed: MAX_COLUMNS },
  });
}

const nothing: CsvCell = { text: "", isText: false };

function asText(text: string): CsvCell {
  return { text, isText: true };
}

function* decode(bytes: Uint8Array): Generator<string> {
  const decoder = new TextDecoder();
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield decoder.decode(bytes.subarray(at, at + PIECE_BYTES), { stream: true });
  yield decoder.decode();
}
