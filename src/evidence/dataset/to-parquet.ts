import { SluiceError } from "../../errors/sluice-error.ts";
import type { EvidenceFormat } from "../contract.ts";
import type { DatasetStore, DatasetTable } from "./contract.ts";

/** What it takes of a sandbox's session. */
export interface ParquetSession extends AsyncDisposable {
  bind(alias: string, input: { readonly format: EvidenceFormat; readonly bytes: Uint8Array }): void;
  run(request: { readonly code: string; readonly signal?: AbortSignal }): Promise<{
    readonly status: string;
    readonly resultJson: string | null;
    readonly error?: { readonly type: string; readonly message: string } | undefined;
  }>;
}

export interface ParquetOptions {
  readonly datasets: DatasetStore;
  readonly hash: string;
  readonly table: string;
  readonly openSession: (options: { signal?: AbortSignal }) => Promise<ParquetSession>;
  readonly signal?: AbortSignal;
}

/** A table of a dataset as Parquet: made in a sandbox when it is first asked for, and kept beside the dataset. Null when there is no such table. */
export async function toParquet({ datasets, hash, table: name, openSession, signal }: ParquetOptions): Promise<Uint8Array | null> {
  const reader = await datasets.open(hash);
  const table = reader?.tables.find((one) => one.name === name);
  if (reader === null || table === undefined) return null;
  const file = `${name}.parquet`;
  const kept = await datasets.readDerived(hash, file);
  if (kept !== null) return kept;
  const bytes = (await reader.readTable(name))!;
  const made = table.format === "parquet" ? bytes : await convertToParquet({ bytes, table, openSession, ...(signal && { signal }) });
  await datasets.keepDerived(hash, file, made);
  return made;
}

export type Conversion = Pick<ParquetOptions, "openSession" | "signal"> & {
  readonly bytes: Uint8Array;
  readonly table: Pick<DatasetTable, "name" | "format" | "path">;
};

/** Below the limit of a result, as base64. */
const SLICE_BYTES = 6 * 1024 * 1024;

/** Any table that Python can read, as Parquet. */
export async function convertToParquet({ bytes, table, openSession, signal }: Conversion): Promise<Uint8Array> {
  const signalled = signal === undefined ? {} : { signal };
  await using session = await openSession(signalled);
  session.bind("dataset_table", { format: table.format, bytes });
  const run = async (code: string): Promise<unknown> => {
    const { status, resultJson, error } = await session.run({ code, ...signalled });
    if (status !== "ok" || resultJson === null)
      throw notConverted(table.name, error === undefined ? status : `${error.type}: ${error.message}`);
    return JSON.parse(resultJson);
  };
  const size = (await run(writeCode(table.path))) as number;
  const slices: Uint8Array[] = [];
  for (let offset = 0; offset < size; offset += SLICE_BYTES) slices.push(Buffer.from((await run(readCode(offset))) as string, "base64"));
  return Buffer.concat(slices);
}

/** Columns of mixed or nested values, which Parquet has no type for, become their JSON text. */
function writeCode(path: readonly string[]): string {
  return `
import json, os
import pyarrow as pa
value = dataset_table
for key in json.loads(${JSON.stringify(JSON.stringify(path))}):
    value = value[key]
frame = to_frame(value)
frame.columns = [str(name) for name in frame.columns]
def plain(column):
    try:
        pa.array(column, from_pandas=True)
        return column
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return column.map(lambda cell: cell if cell is None or isinstance(cell, str) else json.dumps(cell, default=str))
frame = frame.apply(plain) if len(frame.columns) else frame
frame.to_parquet("dataset_table.parquet", index=False)
set_result(os.path.getsize("dataset_table.parquet"))
`;
}

function readCode(offset: number): string {
  return `
import base64
with open("dataset_table.parquet", "rb") as file:
    file.seek(${offset})
    set_result(base64.b64encode(file.read(${SLICE_BYTES})).decode())
`;
}

function notConverted(table: string, why: string): SluiceError {
  return new SluiceError({
    code: "PARQUET_NOT_MADE",
    message: `The table ${table} cannot be had as Parquet: ${why}`,
    hint: "Take it as JSON or as CSV.",
  });
}
