import { measureText } from "./measure-text.ts";
import { parseJsonText } from "./parse-json-text.ts";
import type { OutputPart } from "./output-part.ts";

/** Text as sent: JSON where it is JSON, else text. */
export function readText(sent: string): OutputPart {
  const parsed = parseJsonText(sent);
  if (parsed === null) return plainText(sent);
  const { bytes } = measureText(sent);
  const body = bytes === null ? { body: escapeHalves(sent) } : { body: sent, bytes };
  return { part: "json", format: "json", ...body, value: parsed.value, isStrictJson: parsed.strict };
}

export function plainText(sent: string): OutputPart {
  const { bytes } = measureText(sent);
  if (bytes !== null) return { part: "text", format: "text", body: sent, bytes };
  const unrepresentable = [...sent.matchAll(/\p{Surrogate}/gu)].length;
  return { part: "text", format: "text", body: sent, precisionLoss: { integersPast2To53: 0, nonFinite: 0, unrepresentable } };
}

/** Half a character cannot be written as UTF-8; in JSON, where it can only be inside a string, its escape means the same. */
function escapeHalves(json: string): string {
  return json.replaceAll(/\p{Surrogate}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`);
}
