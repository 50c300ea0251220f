import type { DatasetIndex, DatasetIndexEntry, DatasetTable } from "./contract.ts";

const tabular: ReadonlySet<string> = new Set(["records", "array", "map", "table"]);
/** Tables that only Python can read, so that the host knows nothing of their rows. */
const binary: ReadonlySet<string> = new Set(["parquet", "xlsx"]);

/** What of a dataset has rows. */
export function listTables({ entries }: DatasetIndex): DatasetTable[] {
  return entries
    .filter(({ shape, format }) => tabular.has(shape.kind) || binary.has(format))
    .map(({ name, format, shape }) => ({ name, format, path: shape.path, rows: shape.rows }));
}

/** The bytes that were kept, from how they stand in the document. */
export function readEntry({ encoding }: DatasetIndexEntry, body: Uint8Array): Uint8Array {
  if (encoding === "json") return body;
  const text = JSON.parse(new TextDecoder().decode(body)) as string;
  return encoding === "base64" ? Buffer.from(text, "base64") : Buffer.from(text);
}
