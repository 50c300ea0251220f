import { isRecord } from "./is-record.ts";

/**
 * An envelope of somebody else's: another server's, with kinds and codes that are not in our table (`ads_api_http`). It is passed on whole. Only what
 * makes it one is certain; every other key is as it was sent.
 */
export interface ForeignEnvelope {
  readonly error_kind: string;
  readonly summary: string;
  readonly _envelope_version: 1;
  readonly [key: string]: unknown;
}

/** Larger ones are not errors that a model should read. */
const MAX_FOREIGN_ENVELOPE_CHARACTERS = 65_536;

/** From a value or its JSON text, by its three marks; null when it has not all of them, or is too large. */
export function parseForeignEnvelope(value: unknown): ForeignEnvelope | null {
  const read = typeof value === "string" ? fromText(value) : value;
  if (!isRecord(read) || !hasMarks(read)) return null;
  return typeof value === "string" || isSmall(read) ? read : null;
}

/**
 * The first envelope inside a longer text (`Error calling tool: {"error_kind": …}`), also inside another object. Bounded: it reads the first
 * 256 Ki characters and gives up after a fixed amount of work.
 */
export function findEnvelopeInText(text: string): ForeignEnvelope | null {
  if (!text.includes('"_envelope_version"')) return null;
  const searched = text.slice(0, MAX_SEARCHED_CHARACTERS);
  let work = MAX_WORK_CHARACTERS;
  for (let start = searched.indexOf("{"); start !== -1 && work > 0; start = searched.indexOf("{", start + 1)) {
    const end = endOfObject(searched, start, work);
    work -= (end ?? Math.min(searched.length, start + work)) - start;
    const found = end === null ? null : parseForeignEnvelope(searched.slice(start, end));
    if (found !== null) return found;
  }
  return null;
}

const MAX_SEARCHED_CHARACTERS = 262_144;
const MAX_WORK_CHARACTERS = 4_000_000;

/** Behind the brace that closes the one at `start`; braces in strings do not count. Null when there is none within `limit` characters. */
function endOfObject(text: string, start: number, limit: number): number | null {
  let depth = 0;
  let inString = false;
  const stop = Math.min(text.length, start + limit);
  for (let index = start; index < stop; index += 1) {
    const character = text[index];
    if (inString) {
      if (character === "\\") index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === "{") depth += 1;
    else if (character === "}") {
      depth -= 1;
      if (depth === 0) return index + 1;
    }
  }
  return null;
}

function fromText(text: string): unknown {
  if (text.length > MAX_FOREIGN_ENVELOPE_CHARACTERS) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function hasMarks(value: Readonly<Record<string, unknown>>): value is ForeignEnvelope {
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
