import { endOfValue, parseJson, isRecord } from "../text/json.ts";

/**
 * A v1 error object of another server, with kinds and codes that are not in our table, such as `ads_api_http`. It is passed on unchanged. Only these three
 * fields are checked.
 */
export interface ForeignToolError {
  readonly error_kind: string;
  readonly summary: string;
  readonly _envelope_version: 1;
  readonly [key: string]: unknown;
}

/** A larger object is not an error that a model should read. */
const MAX_FOREIGN_ERROR_CHARACTERS = 65_536;

/** Parses a v1 error object from a value or its JSON text. Returns null if a required field is missing or the object is too large. */
export function parseForeignToolError(value: unknown): ForeignToolError | null {
  const parsed = typeof value !== "string" ? value : value.length <= MAX_FOREIGN_ERROR_CHARACTERS ? parseJson(value) : null;
  if (!isRecord(parsed) || !isToolErrorLike(parsed)) return null;
  return typeof value === "string" || isSmall(parsed) ? parsed : null;
}

/**
 * Finds the first v1 error object in a longer text (`Error calling tool: {"error_kind": …}`), even inside another object. Searches only the first 256 Ki
 * characters and stops after a fixed amount of work.
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

function isToolErrorLike(value: Readonly<Record<string, unknown>>): value is ForeignToolError {
  const { error_kind: kind, summary, _envelope_version: version } = value;
  return typeof kind === "string" && kind !== "" && typeof summary === "string" && version === 1;
}

function isSmall(value: unknown): boolean {
  try {
    return JSON.stringify(value).length <= MAX_FOREIGN_ERROR_CHARACTERS;
  } catch {
    return false;
  }
}
