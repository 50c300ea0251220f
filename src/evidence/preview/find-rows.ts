import { isRecord, ExactNumber } from "../../text/json.ts";

/** Returns the keys of an object. Listing a million keys takes as long as parsing them, so each large object is listed once per digest. */
export type ReadKeys = (value: object) => readonly string[];

const LARGE_KEYS = 1000;

export function createReadKeys(): ReadKeys {
  const cache = new Map<object, readonly string[]>();
  return (value) => {
    const found = cache.get(value);
    if (found !== undefined) return found;
    const keys = Object.keys(value);
    if (keys.length > LARGE_KEYS) cache.set(value, keys);
    return keys;
  };
}

export interface FoundRows {
  readonly kind: "records" | "array" | "map";
  readonly path: readonly string[];
  /** The array, or the object of a map. */
  readonly holder: object;
  readonly count: number;
  row(index: number): unknown;
}

const MAX_DEPTH = 3;
const MAX_KEYS = 200;
/** An object with more keys than this, whose values all have the same type, is read as rows by key. */
const MAP_KEYS = 64;
/** A list of scalars inside an object counts as rows only from this length: shorter ones are usually tags. */
const PLAIN_ROWS = 10;

/** Finds the rows of a value: the value itself, else the longest list of records inside it, else the longest list of scalars. */
export function findRows(root: unknown, readKeys: ReadKeys): FoundRows | null {
  const own = asRows(root, [], readKeys);
  if (own !== null) return own;
  const candidates = findCandidates(root, [], readKeys);
  const isStructured = ({ count, row }: FoundRows): boolean => count > 0 && typeof row(0) === "object" && row(0) !== null;
  return (
    longest(candidates.filter(isStructured)) ?? longest(candidates.filter(({ count }) => count >= PLAIN_ROWS)) ?? onlyEmpty(candidates)
  );
}

/** Whether an object is a dictionary rather than a record. */
export function isMap(value: Readonly<Record<string, unknown>>, keys: readonly string[]): boolean {
  if (keys.length <= MAP_KEYS) return false;
  const step = Math.max(1, Math.floor(keys.length / 32));
  const kinds = new Set<string>();
  for (let at = 0; at < keys.length; at += step) kinds.add(kindOf(value[keys[at]!]));
  kinds.delete("null");
  return kinds.size <= 1;
}

function asRows(value: unknown, path: readonly string[], readKeys: ReadKeys): FoundRows | null {
  if (Array.isArray(value)) {
    const kind = value.length > 0 && isRecord(value[0]) && !(value[0] instanceof ExactNumber) ? "records" : "array";
    return { kind, path, holder: value, count: value.length, row: (index) => value.at(index) as unknown };
  }
  if (!isRecord(value) || value instanceof ExactNumber) return null;
  const keys = readKeys(value);
  if (!isMap(value, keys)) return null;
  return {
    kind: "map",
    path,
    holder: value,
    count: keys.length,
    row: (index) => Object.fromEntries([[keys[index]!, value[keys[index]!]]]),
  };
}

/** The lists and maps inside a value, down to three levels. */
function findCandidates(value: unknown, path: readonly string[], readKeys: ReadKeys): FoundRows[] {
  if (!isRecord(value) || value instanceof ExactNumber || path.length >= MAX_DEPTH) return [];
  const keys = readKeys(value).slice(0, MAX_KEYS);
  return keys.flatMap((key) => asRows(value[key], [...path, key], readKeys) ?? findCandidates(value[key], [...path, key], readKeys));
}

function longest(candidates: readonly FoundRows[]): FoundRows | null {
  return candidates.reduce<FoundRows | null>((best, found) => (best === null || found.count > best.count ? found : best), null);
}

/** A single empty list counts as 0 rows, as in `{"data": []}`. Of several empty lists, none is chosen. */
function onlyEmpty(candidates: readonly FoundRows[]): FoundRows | null {
  return candidates.length === 1 && candidates[0]!.count === 0 ? candidates[0]! : null;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return value instanceof ExactNumber ? "number" : typeof value;
}
