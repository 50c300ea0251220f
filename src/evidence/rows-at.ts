import { isRecord } from "../text/json.ts";

export type RowsAt =
  | Extract<ReadPath, { ok: false }>
  | {
      readonly ok: true;
      /** Null if there is no list of records. Nested lists and objects are replaced with empty ones. */
      readonly rows: readonly Readonly<Record<string, unknown>>[] | null;
      /** Number of rows. If it exceeds `maxRows`, `rows` has only the first hundred. */
      readonly total: number;
      /** Keys of the root value. */
      readonly rootKeys: readonly string[];
    };

export interface RowsQuestion {
  /** A path for `readPath`. */
  readonly path: string | readonly string[];
  readonly maxRows: number;
}

const SHOWN_ROWS = 100;

/** The flat rows at a path inside a value. They are small enough to send between threads. */
export function rowsAt(root: unknown, { path, maxRows }: RowsQuestion): RowsAt {
  const found = readPath(root, path);
  if (!found.ok) return found;
  const { value } = found;
  const isRows = Array.isArray(value) && value.length > 0 && value.every(isRecord);
  const shown = !isRows ? null : value.length > maxRows ? value.slice(0, SHOWN_ROWS) : value;
  return {
    ok: true,
    rows: shown?.map(toFlat) ?? null,
    total: isRows ? value.length : 0,
    rootKeys: isRecord(root) ? Object.keys(root).slice(0, SHOWN_ROWS) : [],
  };
}

function toFlat(row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).map(([key, value]) => [key, Array.isArray(value) ? [] : isRecord(value) ? {} : value]));
}

/** The value at a path; or the last place that exists (`at`) and its keys. */
export type ReadPath = { ok: true; value: unknown } | { ok: false; at: string; keys: string[] };

/** Reads a value by a path such as `data.rows`, `items[0].prices`, `$.data` or `["by.day"]['rows']`, or by a list of keys. */
export function readPath(value: unknown, path: string | readonly string[]): ReadPath {
  let current = value;
  let at = "";
  for (const step of typeof path === "string" ? toSteps(path) : path) {
    const next = Array.isArray(current)
      ? current[Number(step)]
      : isRecord(current) && Object.hasOwn(current, step)
        ? current[step]
        : undefined;
    if (next === undefined)
      return { ok: false, at, keys: typeof current === "object" && current !== null ? Object.keys(current).slice(0, 30) : [] };
    current = next;
    at = at === "" ? step : `${at}.${step}`;
  }
  return { ok: true, value: current };
}

/** Keys that contain dots or brackets are quoted, as in Python. */
function toSteps(path: string): string[] {
  const steps = [...path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\['((?:[^'\\]|\\.)*)'\]|([^.[\]]+)/g)].map(
    ([, double, single, plain]) => plain ?? (double ?? single!).replaceAll(/\\(.)/g, "$1"),
  );
  return path.startsWith("$") && steps[0] === "$" ? steps.slice(1) : steps;
}
