import { isObject } from "./mcp-result.ts";
import { readPath, type ReadPath } from "./read-path.ts";

export type RowsAt =
  | Extract<ReadPath, { ok: false }>
  | {
      readonly ok: true;
      /** Null when there is no list of records. Values that are lists or objects are there as empty ones. */
      readonly rows: readonly Readonly<Record<string, unknown>>[] | null;
      /** How many there are. When they are more than was asked for, `rows` has only the first hundred. */
      readonly total: number;
      /** Of the value that the path begins at. */
      readonly rootKeys: readonly string[];
    };

export interface RowsQuestion {
  /** As `readPath` takes it. */
  readonly path: string | readonly string[];
  readonly maxRows: number;
}

const SHOWN_ROWS = 100;

/** The flat rows at a path inside a value: small enough to go from one thread to another. */
export function rowsAt(root: unknown, { path, maxRows }: RowsQuestion): RowsAt {
  const found = readPath(root, path);
  if (!found.ok) return found;
  const { value } = found;
  const isRows = Array.isArray(value) && value.length > 0 && value.every(isObject);
  const shown = !isRows ? null : value.length > maxRows ? value.slice(0, SHOWN_ROWS) : value;
  return {
    ok: true,
    rows: shown?.map(toFlat) ?? null,
    total: isRows ? value.length : 0,
    rootKeys: isObject(root) ? Object.keys(root).slice(0, SHOWN_ROWS) : [],
  };
}

/** The value of JSON; undefined for what is none. */
export function parseBytes(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

function toFlat(row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).map(([key, value]) => [key, empty(value)]));
}

function empty(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  return Array.isArray(value) ? [] : {};
}
