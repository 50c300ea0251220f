import type { DatasetIndex, DatasetIndexEntry, DatasetTable } from "./contract.ts";

const tabular: ReadonlySet<string> = new Set(["records", "array", "map", "table"]);

/** What of a dataset has rows. */
export function listTables({ entries }: DatasetIndex): DatasetTable[] {
  return entries
    .filter(({ shape }) => tabular.has(shape.kind))
    .map(({ name, format, shape }) => ({ name, format, path: shape.path, rows: shape.rows }));
}

/** The bytes that were kept, from how they stand in the document. */
export function readEntry({ encoding }: DatasetIndexEntry, body: Uint8Array): Uint8Array {
  if (encoding === "json") return body;
  const text = JSON.parse(new TextDecoder().decode(body)) as string;
  return encoding === "base64" ? Buffer.from(text, "base64") : Buffer.from(text);
}
