import { z } from "zod";
import { SluiceError } from "../../errors/sluice-error.ts";
import type { EvidenceFormat, EvidenceItem } from "../../evidence/contract.ts";
import type { DatasetStore } from "../../evidence/dataset/contract.ts";
import { convertToParquet, toParquet } from "../../evidence/dataset/to-parquet.ts";
import type { Session } from "../../interpreter/open-session.ts";
import type { TableDownload } from "../contract.ts";
import { askTable } from "../tables/ask-table.ts";
import { canStreamCsv, streamCsv } from "./stream-csv.ts";

type DownloadFormat = "csv" | "parquet";

interface Making {
  readonly as: DownloadFormat;
  readonly openSession: (options?: { signal?: AbortSignal }) => Promise<Session>;
  readonly signal?: AbortSignal | undefined;
}

export interface TableDownloadOptions extends Making {
  readonly datasets: DatasetStore;
  readonly hash: string;
  /** The alias, or `chart_1`. */
  readonly table: string;
}

/** A table of a turn's dataset as a file. Null when there is no such dataset or table. Parquet is made once and kept beside the dataset. */
export async function openTableDownload({
  datasets,
  hash,
  table: name,
  as,
  openSession,
  signal,
}: TableDownloadOptions): Promise<TableDownload | null> {
  const reader = await datasets.open(hash);
  const table = reader?.tables.find((one) => one.name === name);
  if (reader === null || table === undefined) return null;
  if (as === "parquet") {
    const made = await toParquet({
      datasets,
      hash,
      table: name,
      openSession: (options) => openSession(options),
      ...(signal && { signal }),
    });
    return made === null ? null : asParquet(name, made);
  }
  return asCsv({ name, format: table.format, path: table.path, bytes: (await reader.readTable(name))!, openSession, signal });
}

/** One alias of a conversation as a file. */
export async function openAliasDownload({
  item,
  as,
  openSession,
  signal,
}: Making & { readonly item: EvidenceItem }): Promise<TableDownload> {
  const { alias: name, format, file, shape } = item;
  const path = file === undefined ? shape.path : [];
  const bytes = item.read();
  if (as === "csv") return asCsv({ name, format, path, bytes, openSession, signal });
  if (format === "parquet") return asParquet(name, bytes);
  return asParquet(
    name,
    await convertToParquet({
      bytes,
      table: { name, format, path },
      openSession: (options) => openSession(options),
      ...(signal && { signal }),
    }),
  );
}

function asParquet(name: string, bytes: Uint8Array): TableDownload {
  return { fileName: `${name}.parquet`, contentType: "application/vnd.apache.parquet", bytes: bytes.length, stream: () => inPieces(bytes) };
}

const PIECE_BYTES = 1 << 20;

async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

interface Csv extends Pick<Making, "openSession" | "signal"> {
  readonly name: string;
  readonly format: EvidenceFormat;
  readonly path: readonly string[];
  readonly bytes: Uint8Array;
}

function asCsv(table: Csv): TableDownload {
  const { name, bytes, format, path } = table;
  if (format === "text" || format === "bytes") throw noTable(name, format);
  const stream = canStreamCsv(bytes.length, table) ? () => streamCsv(bytes, { format, path }) : () => streamFromSandbox(table);
  return { fileName: `${name}.csv`, contentType: "text/csv; charset=utf-8; header=present", bytes: null, stream };
}

/** Of CSV text in one answer: as JSON in JSON it is still below the limit of a result. */
const SLICE_BYTES = 2 * 1024 * 1024;

const sliceSchema = z.object({ text: z.string(), next: z.int().positive().nullable() });

/** Parquet, Excel and large JSON: parsed and written in a sandbox of its own, a slice at a time. */
async function* streamFromSandbox({ name, format, path, bytes, openSession, signal }: Csv): AsyncGenerator<Uint8Array> {
  const session = await openSession(signal === undefined ? {} : { signal });
  try {
    const place = { session: Promise.resolve(session), bound: new Set<string>() };
    const table = { alias: name, format, path, input: () => ({ format, bytes }) };
    for (let offset: number | null = 0; offset !== null;) {
      signal?.throwIfAborted();
      const reply = await askTable(place, table, { ask: "csv", offset, maxBytes: SLICE_BYTES });
      if (!reply.ok) throw notWritten(name, reply.refusal.why, reply.refusal.hints[0]);
      const slice: z.infer<typeof sliceSchema> = sliceSchema.parse(JSON.parse(reply.json));
      yield Buffer.from(slice.text);
      offset = slice.next;
    }
  } finally {
    await session.close();
  }
}

function noTable(name: string, format: EvidenceFormat): SluiceError {
  return new SluiceError({ code: "NO_TABLE", message: `${name} is ${format} and has no rows.`, hint: "Take it as it is." });
}

function notWritten(name: string, why: string, hint = "Take it as JSON."): SluiceError {
  return new SluiceError({ code: "CSV_NOT_MADE", message: `The table ${name} cannot be had as CSV: ${why}`, hint });
}
