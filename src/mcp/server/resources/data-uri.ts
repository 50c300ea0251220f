import type { ResourceLink } from "@modelcontextprotocol/server";
import type { EvidenceFormat, EvidenceItem } from "../../../evidence/contract.ts";

/** `sluice://data/rows_1?offset=50`; of a session that is named by its handle `sluice://sessions/HANDLE/data/rows_1`. */
export interface DataAddress {
  readonly session: string | null;
  readonly alias: string;
  readonly offset: number;
}

const pattern = /^sluice:\/\/(?:sessions\/(?<session>[\w-]+)\/)?data\/(?<alias>[^/?#]+)(?:\?offset=(?<offset>\d{1,15}))?$/u;

export const dataTemplate = "sluice://data/{alias}{?offset}";
export const sessionDataTemplate = "sluice://sessions/{session}/data/{alias}{?offset}";

export function toDataUri({ session, alias, offset }: DataAddress): string {
  const place = session === null ? "" : `sessions/${session}/`;
  return `sluice://${place}data/${encodeURIComponent(alias)}${offset === 0 ? "" : `?offset=${offset}`}`;
}

export function parseDataUri(uri: string): DataAddress | null {
  const { session = null, alias = "", offset = "0" } = pattern.exec(uri)?.groups ?? {};
  const name = decode(alias);
  return name === null || name === "" ? null : { session, alias: name, offset: Number(offset) };
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

const mimeTypes: Readonly<Record<EvidenceFormat, string>> = {
  json: "application/json",
  jsonl: "application/jsonl",
  csv: "text/csv",
  tsv: "text/tab-separated-values",
  parquet: "application/vnd.apache.parquet",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  text: "text/plain",
  bytes: "application/octet-stream",
};

/** Where the whole of an output can be read, in pages. The pages are JSON whatever the data is. */
export function linkTo({ alias, bytes, format, shape }: EvidenceItem, session: string | null): ResourceLink {
  const rows = shape.rows === null ? "" : `${shape.rows} rows, `;
  return {
    type: "resource_link",
    uri: toDataUri({ session, alias, offset: 0 }),
    name: alias,
    description: `The whole of ${alias} (${rows}${bytes} bytes of ${mimeTypes[format]}), in pages of JSON rows: each names the next.`,
    mimeType: "application/json",
  };
}
