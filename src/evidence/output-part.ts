import { transcode } from "node:buffer";
import { hash } from "node:crypto";
import v8 from "node:v8";
import type { EvidenceFormat, PrecisionLoss } from "./evidence-store.ts";
import { digest, type Digest } from "./preview/digest.ts";
import { toJsonText } from "./to-json-text.ts";

/** One part of an output, before it is kept. */
export interface OutputPart {
  /** Suffix of the alias if it is not the main part. */
  readonly part: string;
  readonly format: EvidenceFormat;
  /** Text, or bytes that are not text. */
  readonly body: string | Uint8Array;
  /** Size of a text as UTF-8, if it was already measured. */
  readonly bytes?: number;
  /** The parsed value of JSON, so that it is not parsed again. */
  readonly value?: unknown;
  /** Whether `body` is valid JSON, without extensions such as NaN. */
  readonly isStrictJson?: boolean;
  readonly mimeType?: string | undefined;
  readonly precisionLoss?: PrecisionLoss | undefined;
}

/** A part with its slowly computed facts and a buffer of its own. Plain data, so that a worker thread can transfer it. */
export interface ReadPart extends Omit<OutputPart, "value" | "bytes"> {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly sha256: string;
  readonly digest: Digest;
}

/** An output that a worker thread has read: its parts, the main one first. */
export class ReadOutput {
  readonly parts: readonly ReadPart[];

  constructor(parts: readonly ReadPart[]) {
    this.parts = parts;
  }
}

export function fromValue(output: unknown): OutputPart {
  const { text, value, precisionLoss } = toJsonText(output);
  return { part: "json", format: "json", body: text, value, isStrictJson: true, precisionLoss };
}

export function toReadPart(read: OutputPart): ReadPart {
  const { value: _value, bytes: _bytes, ...part } = read;
  const body = typeof read.body === "string" ? new TextEncoder().encode(read.body) : Uint8Array.from(read.body);
  return { ...part, body, sha256: hash("sha256", body), digest: digest(read) };
}

export function sizeOfPart(part: OutputPart | ReadPart): number {
  const { body } = part;
  if ("bytes" in part && part.bytes !== undefined) return part.bytes;
  return typeof body === "string" ? (measureText(body) ?? Buffer.byteLength(body)) : body.length;
}

const PIECE_CHARACTERS = 131_072;

/**
 * The size of a text as UTF-8; null if it has unpaired surrogates, which UTF-8 cannot encode. Transcodes text beyond Latin-1 in pieces, which takes a third
 * of the time of `Buffer.byteLength` and `isWellFormed` (docs/decisions/0009).
 */
export function measureText(text: string): number | null {
  if (v8.isStringOneByteRepresentation(text)) return Buffer.byteLength(text);
  if (text.length <= PIECE_CHARACTERS) return text.isWellFormed() ? Buffer.byteLength(text) : null;
  const piece = Buffer.allocUnsafe(2 * PIECE_CHARACTERS);
  let bytes = 0;
  for (let at = 0; at < text.length;) {
    const end = endOfPiece(text, at);
    const written = piece.write(text.slice(at, end), "utf16le");
    try {
      const encoded = transcode(piece.subarray(0, written), "utf16le", "utf8");
      bytes += encoded.length;
      // Frees the memory now, for the next piece. Getting new memory would take as long as transcoding.
      if (encoded.length === encoded.buffer.byteLength) encoded.buffer.transfer(0);
    } catch {
      return null;
    }
    at = end;
  }
  return bytes;
}

/** Does not split a surrogate pair. */
function endOfPiece(text: string, start: number): number {
  const end = Math.min(text.length, start + PIECE_CHARACTERS);
  const isCut = end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800;
  return isCut ? end - 1 : end;
}
