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
  if (texts.length === 1 && texts[0] === json) return json;
  const inner = onlyResult(structured);
  const list = `[${texts.join(",")}]`;
  const only = texts.length === 1 ? texts[0]! : list;
  if (says(only, structured, json)) return only;
  if (inner === undefined) return null;
  if (texts.length === 1 && texts[0] === inner) return json;
  const innerJson = JSON.stringify(inner);
  const found = [only, list].find((text) => says(text, inner, innerJson));
  if (found !== undefined) return `{"result":${found}}`;
  return isDeepStrictEqual(inner, texts) ? json : null;
}

function onlyResult(structured: unknown): unknown {
  return isObject(structured) && "result" in structured && Object.keys(structured).length === 1 ? structured["result"] : undefined;
}

/** Equal values have texts of equal length once they are written the same way, so the deep comparison is for another order of keys only. */
function says(text: string, value: unknown, json: string): boolean {
  try {
    const parsed: unknown = JSON.parse(text);
    const written = JSON.stringify(parsed);
    return written === json || (written.length === json.length && isDeepStrictEqual(parsed, value));
  } catch {
    return false; // not JSON, or nested too deep to compare
  }
}
