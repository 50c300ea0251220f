import { endOfValue, parseJson } from "../text/json.ts";
import { isRecord } from "./is-record.ts";

/**
 * An envelope of somebody else's: another server's, with kinds and codes that are not in our table (`ads_api_http`). It is passed on whole. Only what
 * makes it one is certain; every other key is as it was sent.
 */
export interface ForeignToolError {
  readonly error_kind: string;
  readonly summary: string;
  readonly _envelope_version: 1;
  readonly [key: string]: unknown;
}

/** Larger ones are not errors that a model should read. */
const MAX_FOREIGN_ENVELOPE_CHARACTERS = 65_536;

/** From a value or its JSON text, by its three marks; null when it has not all of them, or is too large. */
export function parseForeignToolError(value: unknown): ForeignToolError | null {
  const read = typeof value !== "string" ? value : value.length <= MAX_FOREIGN_ENVELOPE_CHARACTERS ? parseJson(value) : null;
  if (!isRecord(read) || !hasMarks(read)) return null;
  return typeof value === "string" || isSmall(read) ? read : null;
}

/**
 * The first envelope inside a longer text (`Error calling tool: {"error_kind": …}`), also inside another object. Bounded: it reads the first
 * 256 Ki characters and gives up after a fixed amount of work.
 */
export function findToolErrorInText(text: string): ForeignToolError | null {
  if (!text.includes('"_envelope_version"')) return null;
  const searched = text.slice(0, MAX_SEARCHED_CHARACTERS);
  let work = MAX_WORK_CHARACTERS;
  for (let start = searched.indexOf("{"); start !== -1 && work > 0; start = searched.indexOf("{", start + 1)) {
    const end = endOfValue(searched, start, Math.min(searched.length, start + work));
    work -= end - start;
    const found = parseForeignToolError(searched.slice(start, end));
    if (found !== null) return found;
  }
  return null;
}

const MAX_SEARCHED_CHARACTERS = 262_144;
const MAX_WORK_CHARACTERS = 4_000_000;

function hasMarks(value: Readonly<Record<string, unknown>>): value is ForeignToolError {
  const { error_kind: kind, summary, _envelope_version: version } = value;
  return typeof kind === "string" && kind !== "" && typeof summary === "string" && version === 1;
}

function isSmall(value: unknown): boolean {
  try {
    return JSON.stringify(value).length <= MAX_FOREIGN_ENVELOPE_CHARACTERS;
  } catch {
    return false;
  }
}
