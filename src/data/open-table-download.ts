import { z } from "zod";
import { SluiceError } from "../errors/sluice-error.ts";
import type { EvidenceFormat, EvidenceItem } from "../evidence/evidence-store.ts";
import type { DatasetStore } from "../evidence/dataset/dataset.ts";
import type { ReaderOptions } from "../protocol/reader.ts";
import type { CellSession } from "../cells/open-cell-session.ts";
import type { GivenTable } from "../protocol/http-tables.ts";
import type { TableDownload } from "./conversation-data.ts";
import { queryTable, type TableRefusal } from "./tables/query-table.ts";

interface DownloadOptions {
  readonly as: "csv" | "parquet";
  readonly openCellSession: (options?: { signal?: AbortSignal }) => Promise<CellSession>;
  readonly signal?: AbortSignal | undefined;
}

export interface TableDownloadOptions extends DownloadOptions {
  readonly datasets: DatasetStore;
  readonly hash: string;
  /** An alias, or the name of a chart such as `chart_1`. */
  readonly table: string;
}

/** Converts a table of a turn's dataset to a file, in a sandbox. Returns null if the dataset or the table does not exist. */
export async function openTableDownload({ datasets, hash, table: name, ...options }: TableDownloadOptions): Promise<TableDownload | null> {
  const reader = await datasets.open(hash);
  const table = reader?.tables.find((one) => one.name === name);
  if (reader === null || table === undefined) return null;
  const { format, path, reader: given } = table;
  return await openDownload({ name, format, path, given, bytes: (await reader.readTable(name))!, ...options });
}

/** Converts an alias of a conversation to a file, in a sandbox. */
export async function openAliasDownload({ item, ...options }: DownloadOptions & { readonly item: EvidenceItem }): Promise<TableDownload> {
  const { alias: name, format, file, shape, reader: given } = item;
  return await openDownload({ name, format, given, path: file === undefined ? shape.path : [], bytes: item.read(), ...options });
}

/** Converts rows that a client sent to Parquet, in a sandbox. */
export async function openRowsDownload({
  table,
  ...options
}: Omit<DownloadOptions, "as"> & { readonly table: GivenTable }): Promise<TableDownload> {
  const keys = table.columns.map((name) => JSON.stringify(name));
  const records = table.rows.map((row) => `{${row.map((cell, at) => `${keys[at]}:${JSON.stringify(cell)}`).join(",")}}`);
  const bytes = Buffer.from(`[${records.join(",")}]`);
  return await openDownload({ name: "table", format: "json", path: [], bytes, as: "parquet", ...options });
}

interface SourceTable extends DownloadOptions {
  readonly name: string;
  readonly format: EvidenceFormat;
  readonly path: readonly string[];
  readonly bytes: Uint8Array;
  /** How to read a CSV-like table, as given. */
  readonly given?: ReaderOptions | undefined;
}

async function openDownload(table: SourceTable): Promise<TableDownload> {
  const { name, format, as } = table;
  if (format === "text" || format === "bytes") throw noTable(name, format);
  if (as === "csv")
    return {
      fileName: `${name}.csv`,
      contentType: "text/csv; charset=utf-8; header=present",
      bytes: null,
      stream: () => writeInSandbox(table),
    };
  const bytes = format === "parquet" ? table.bytes : Buffer.concat(await Array.fromAsync(writeInSandbox(table)));
  return { fileName: `${name}.parquet`, contentType: "application/vnd.apache.parquet", bytes: bytes.length, stream: () => toChunks(bytes) };
}

const CHUNK_BYTES = 1 << 20;

async function* toChunks(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES);
}

/** Size of one reply. As base64 in JSON it stays below the size limit of a cell's result. */
const SLICE_BYTES = 2 * 1024 * 1024;

const sliceSchema = z.object({ base64: z.base64(), more: z.boolean() });

/** Parses and writes the table in a sandbox of its own, and yields the file slice by slice. */
async function* writeInSandbox({ name, format, path, given, bytes, as, openCellSession, signal }: SourceTable): AsyncGenerator<Uint8Array> {
  const cellSession = await openCellSession({ signal });
  try {
    const sandbox = { cellSession: Promise.resolve(cellSession), bound: new Set<string>() };
    const table = { alias: name, format, path, input: () => ({ format, bytes, reader: given }) };
    for (let more = true; more;) {
      signal?.throwIfAborted();
      const reply = await queryTable(sandbox, table, { ask: "download", as, maxBytes: SLICE_BYTES });
      if (!reply.ok) throw notWritten({ name, as }, reply.refusal);
      const slice = sliceSchema.parse(JSON.parse(reply.json));
      yield Buffer.from(slice.base64, "base64");
      more = slice.more;
    }
  } finally {
    await cellSession.close();
  }
}

function noTable(name: string, format: EvidenceFormat): SluiceError {
  return new SluiceError({
    code: "NO_TABLE",
    message: `${name} is ${format} and has no rows.`,
    hint: "Download it in its original format.",
  });
}

function notWritten(
  { name, as }: Pick<SourceTable, "name" | "as">,
  { why, hints: [hint = "Download it as JSON."] }: TableRefusal,
): SluiceError {
  const [code, formatName] = as === "csv" ? (["CSV_NOT_MADE", "CSV"] as const) : (["PARQUET_NOT_MADE", "Parquet"] as const);
  return new SluiceError({ code, message: `The table ${name} cannot be downloaded as ${formatName}: ${why}`, hint });
}
