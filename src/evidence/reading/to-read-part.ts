import { createHash } from "node:crypto";
import type { OutputPart, ReadPart } from "../output-part.ts";
import { digest } from "../preview/digest.ts";

/** All that takes long about a part: its bytes, their hash, and what previews are made of. */
export function toReadPart(read: OutputPart): ReadPart {
  const { value: _value, bytes: _bytes, ...part } = read;
  const made = digest(read);
  const body = toOwnBytes(read.body);
  return { ...part, body, sha256: createHash("sha256").update(body).digest("hex"), digest: made };
}

/** In a buffer of their own, which can be handed over. */
function toOwnBytes(body: string | Uint8Array): Uint8Array {
  if (typeof body === "string") return new TextEncoder().encode(body);
  return body.byteLength === body.buffer.byteLength ? body : Uint8Array.from(body);
}
