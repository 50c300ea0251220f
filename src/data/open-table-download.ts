import { z } from "zod";
import { SluiceError } from "../errors/sluice-error.ts";
import type { EvidenceFormat, EvidenceItem } from "../evidence/evidence-store.ts";
import type { DatasetStore } from "../evidence/dataset/dataset.ts";
import type { CellSession } from "../cells/open-cell-session.ts";
import type { GivenTable } from "../protocol/http-tables.ts";
import type { TableDownload } from "./conversation-data.ts";
import { askTable, type TableRefusal } from "./tables/ask-table.ts";

interface Making {
  readonly as: "csv" | "parquet";
  readonly openCellSession: (options?: { signal?: AbortSignal }) => Promise<CellSession>;
  readonly signal?: AbortSignal | undefined;
}

export interface TableDownloadOptions extends Making {
  readonly datasets: DatasetStore;
  readonly hash: string;
  /** The alias, or `chart_1`. */
  readonly table: string;
}

/** A table of a turn's dataset as a file, written in a sandbox. Null when there is no such dataset or table. */
export async function openTableDownload({ datasets, hash, table: name, ...making }: TableDownloadOptions): Promise<TableDownload | null> {
  const reader = await datasets.open(hash);
  const table = reader?.tables.find((one) => one.name === name);
  if (reader === null || table === undefined) return null;
  const { format, path } = table;
  return await openDownload({ name, format, path, bytes: (await reader.readTable(name))!, ...making });
}

/** One alias of a conversation as a file, written in a sandbox. */
export async function openAliasDownload({ item, ...making }: Making & { readonly item: EvidenceItem }): Promise<TableDownload> {
  const { alias: name, format, file, shape } = item;
  return await openDownload({ name, format, path: file === undefined ? shape.path : [], bytes: item.read(), ...making });
}

/** A client's rows as Parquet, written in a sandbox. */
export async function openRowsDownload({ table, ...making }: Omit<Making, "as"> & { readonly table: GivenTable }): Promise<TableDownload> {
  const keys = table.columns.map((name) => JSON.stringify(name));
  const records = table.rows.map((row) => `{${row.map((cell, at) => `${keys[at]}:${JSON.stringify(cell)}`).join(",")}}`);
  const bytes = Buffer.from(`[${records.join(",")}]`);
  return await openDownload({ name: "table", format: "json", path: [], bytes, as: "parquet", ...making });
}

interface Table extends Making {
  readonly name: string;
  readonly format: EvidenceFormat;
  readonly path: readonly string[];
  readonly bytes: Uint8Array;
}

async function openDownload(table: Table): Promise<TableDownload> {
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
  return { fileName: `${name}.parquet`, contentType: "application/vnd.apache.parquet", bytes: bytes.length, stream: () => inPieces(bytes) };
}

const PIECE_BYTES = 1 << 20;

async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

/** Of one answer: as base64 in JSON it is still below the limit of a result. */
const SLICE_BYTES = 2 * 1024 * 1024;

const sliceSchema = z.object({ base64: z.base64(), more: z.boolean() });

/** Parsed and written in a sandbox of its own, a slice at a time. */
async function* writeInSandbox({ name, format, path, bytes, as, openCellSession, signal }: Table): AsyncGenerator<Uint8Array> {
  const session = await openCellSession(signal === undefined ? {} : { signal });
  try {
    const place = { session: Promise.resolve(session), bound: new Set<string>() };
    const table = { alias: name, format, path, input: () => ({ format, bytes }) };
    for (let more = true; more;) {
      signal?.throwIfAborted();
      const reply = await askTable(place, table, { ask: "download", as, maxBytes: SLICE_BYTES });
      if (!reply.ok) throw notWritten({ name, as }, reply.refusal);
      const slice = sliceSchema.parse(JSON.parse(reply.json));
      yield Buffer.from(slice.base64, "base64");
      more = slice.more;
    }
  } finally {
    await session.close();
  }
}

function noTable(name: string, format: EvidenceFormat): SluiceError {
  return new SluiceError({ code: "NO_TABLE", message: `${name} is ${format} and has no rows.`, hint: "Take it as it is." });
}

function notWritten({ name, as }: Pick<Table, "name" | "as">, { why, hints: [hint = "Take it as JSON."] }: TableRefusal): SluiceError {
  const [code, words] = as === "csv" ? (["CSV_NOT_MADE", "CSV"] as const) : (["PARQUET_NOT_MADE", "Parquet"] as const);
  return new SluiceError({ code, message: `The table ${name} cannot be had as ${words}: ${why}`, hint });
}
