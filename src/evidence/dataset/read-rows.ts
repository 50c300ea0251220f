import { isRecord } from "../../errors/is-record.ts";
import type { DatasetTable } from "./contract.ts";

/** Text, and whether it is more than a number, a truth value or nothing. */
export interface CsvCell {
  readonly text: string;
  readonly isText: boolean;
}

export type CsvRow = ReadonlyMap<string, CsvCell>;

/** A number as it was written. */
class Written {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** The rows of JSON or JSON lines, each a column name to a cell. Null for what has no rows that can be read here. */
export function readRows(bytes: Uint8Array, { format, path }: Pick<DatasetTable, "format" | "path">): CsvRow[] | null {
  const text = new TextDecoder().decode(bytes);
  if (format === "jsonl") {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    return lines.map((line) => toRow(parse(line)));
  }
  if (format !== "json") return null;
  const found = path.reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), parse(text));
  if (Array.isArray(found)) return found.map(toRow);
  if (isRecord(found)) return Object.entries(found).map(([key, value]) => new Map([["key", toCell(key)], ...toRow(value)]));
  return null;
}

function parse(text: string): unknown {
  return JSON.parse(text, ((_key: string, value: unknown, { source }: { source?: string }) =>
    typeof value === "number" && source !== undefined ? new Written(source) : value) as (key: string, value: unknown) => unknown);
}

function toRow(value: unknown): CsvRow {
  if (isRecord(value) && !(value instanceof Written)) return new Map(Object.entries(value).map(([name, cell]) => [name, toCell(cell)]));
  if (Array.isArray(value)) return new Map(value.map((cell, at) => [String(at), toCell(cell)]));
  return new Map([["value", toCell(value)]]);
}

function toCell(value: unknown): CsvCell {
  if (value === null || value === undefined) return { text: "", isText: false };
  if (value instanceof Written) return { text: value.text, isText: false };
  if (typeof value === "string") return { text: value, isText: true };
  if (typeof value === "boolean") return { text: String(value), isText: false };
  return { text: JSON.stringify(value, unwrap), isText: true };
}

function unwrap(_key: string, value: unknown): unknown {
  return value instanceof Written ? (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(value.text) : value;
}
