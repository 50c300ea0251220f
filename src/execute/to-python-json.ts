import { setImmediate as nextTurn } from "node:timers/promises";
import type { EvidenceItem } from "../evidence/contract.ts";

/** JSON as it was sent, text as a string; of bytes only what they are, because a script has no use for them. */
export async function toPythonJson(item: EvidenceItem): Promise<string | Uint8Array> {
  const { alias, format, mimeType, bytes } = item;
  if (format === "json") return withoutMark(item.read());
  if (format === "bytes" || format === "parquet" || format === "xlsx") return JSON.stringify({ alias, mime_type: mimeType ?? null, bytes });
  const text = item.read();
  return text.length <= PIECE_BYTES ? JSON.stringify(new TextDecoder().decode(text)) : await quoteInTurns(text);
}

/** Python's `json.loads` does not take a byte order mark in a string. */
function withoutMark(json: Uint8Array): Uint8Array {
  return json[0] === 0xef && json[1] === 0xbb && json[2] === 0xbf ? json.subarray(3) : json;
}

const PIECE_BYTES = 1024 * 1024;

/** Long text as a JSON string, a piece in each turn of the event loop, so that it holds up nobody. */
async function quoteInTurns(text: Uint8Array): Promise<Uint8Array> {
  const decoder = new TextDecoder();
  const pieces = [Buffer.from('"')];
  for (let at = 0; at < text.length; at += PIECE_BYTES) {
    const isLast = at + PIECE_BYTES >= text.length;
    const piece = decoder.decode(text.subarray(at, at + PIECE_BYTES), { stream: !isLast });
    pieces.push(Buffer.from(JSON.stringify(piece).slice(1, -1)));
    await nextTurn();
  }
  pieces.push(Buffer.from('"'));
  return Buffer.concat(pieces);
}
