import { createHash } from "node:crypto";
import type { EvidenceFormat, PrecisionLoss } from "./evidence-store.ts";
import { digest, type Digest } from "./preview/digest.ts";
import { toJsonText } from "./to-json-text.ts";

/** One thing to keep. `value` is there for JSON: it was parsed on the way, and is not parsed again. */
export interface OutputPart {
  /** What the alias of a further part ends in. */
  readonly part: string;
  readonly format: EvidenceFormat;
  /** Text, or bytes that are not text. */
  readonly body: string | Uint8Array;
  /** Of a text as UTF-8, where it was measured on the way. */
  readonly bytes?: number;
  readonly value?: unknown;
  /** Whether `body` is JSON by the book. */
  readonly isStrictJson?: boolean;
  readonly mimeType?: string;
  readonly precisionLoss?: PrecisionLoss | undefined;
}

/** A part with everything that is slow to compute about it, and bytes that only it refers to. Plain data, so that a thread can send it. */
export interface ReadPart extends Omit<OutputPart, "value" | "bytes"> {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly sha256: string;
  readonly digest: Digest;
}

/** An output that a thread has read: its parts as they are kept, the main one first. */
export class ReadOutput {
  readonly parts: readonly ReadPart[];

  constructor(parts: readonly ReadPart[]) {
    this.parts = parts;
  }
}

export function fromValue(output: unknown): OutputPart {
  const { text, value, precisionLoss } = toJsonText(output);
  return { part: "json", format: "json", body: text, value, isStrictJson: true, ...(precisionLoss ? { precisionLoss } : {}) };
}

export function toReadPart(read: OutputPart): ReadPart {
  const { value: _value, bytes: _bytes, ...part } = read;
  const body = typeof read.body === "string" ? new TextEncoder().encode(read.body) : Uint8Array.from(read.body);
  return { ...part, body, sha256: createHash("sha256").update(body).digest("hex"), digest: digest(read) };
}
