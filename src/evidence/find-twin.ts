import { isDeepStrictEqual } from "node:util";
import { isObject } from "./mcp-result.ts";

interface Structured {
  /** The structured content as we would write it. */
  readonly json: string;
  readonly structured: unknown;
  readonly texts: readonly string[];
}

/**
 * Servers send structured content a second time as text, for clients that only read text. That text still has every digit.
 * Gives JSON text for the structured content made of what was sent, or null when the texts say something else.
 * Some servers wrap what is not an object as `{"result": …}` and send the text, or one text an item, of what is inside.
 */
export function findTwin({ json, structured, texts }: Structured): string | null {
  if (texts.length === 0) return null;
  const inner = onlyResult(structured);
  const list = `[${texts.join(",")}]`;
  const only = texts.length === 1 ? texts[0]! : list;
  if (only === json || (inner !== undefined && [only, list].some((text) => wrap(text) === json))) return json; // nothing has to be parsed
  if (inner === undefined) return says(read(only), structured, json) ? only : null;
  if (only === inner) return json;
  const innerJson = json.slice(wrap("").length - 1, -1);
  const sent = read(only);
  if (says(sent, structured, json)) return only;
  if (says(sent, inner, innerJson)) return wrap(only);
  if (only !== list && says(read(list), inner, innerJson)) return wrap(list);
  return isDeepStrictEqual(inner, texts) ? json : null;
}

function onlyResult(structured: unknown): unknown {
  return isObject(structured) && "result" in structured && Object.keys(structured).length === 1 ? structured["result"] : undefined;
}

function wrap(text: string): string {
  return `{"result":${text}}`;
}

interface ReadText {
  readonly value: unknown;
  /** Written the way we write. */
  readonly written: string;
}

/** Null for what is not JSON, or nested too deep to compare. */
function read(text: string): ReadText | null {
  try {
    const value: unknown = JSON.parse(text);
    return { value, written: JSON.stringify(value) };
  } catch {
    return null;
  }
}

/** Equal values have texts of equal length once they are written the same way, so the deep comparison is for another order of keys only. */
function says(sent: ReadText | null, value: unknown, json: string): boolean {
  if (sent === null) return false;
  return sent.written === json || (sent.written.length === json.length && isDeepStrictEqual(sent.value, value));
}
