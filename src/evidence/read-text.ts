import { parseJsonText } from "./parse-json-text.ts";
import type { OutputPart } from "./output-part.ts";

/** Text as sent: JSON where it is JSON, else text. */
export function readText(sent: string): OutputPart {
  const parsed = parseJsonText(sent);
  if (parsed === null) return plainText(sent);
  return { part: "json", format: "json", body: escapeHalves(sent), value: parsed.value, isStrictJson: parsed.strict };
}

export function plainText(sent: string): OutputPart {
  const halves = sent.isWellFormed() ? 0 : [...sent.matchAll(/\p{Surrogate}/gu)].length;
  const precisionLoss = { integersPast2To53: 0, nonFinite: 0, unrepresentable: halves };
  return { part: "text", format: "text", body: sent, ...(halves > 0 ? { precisionLoss } : {}) };
}

/** Half a character cannot be written as UTF-8; in JSON, where it can only be inside a string, its escape means the same. */
function escapeHalves(json: string): string {
  if (json.isWellFormed()) return json;
  return json.replaceAll(/\p{Surrogate}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`);
}
