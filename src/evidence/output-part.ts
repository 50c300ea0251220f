import type { EvidenceFormat, PrecisionLoss } from "./contract.ts";
import type { Digest } from "./preview/digest.ts";
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

/** A part with all that is to be known of it, and bytes that are nobody else's. Only data, so that a thread can send it. */
export interface ReadPart extends Omit<OutputPart, "value" | "bytes"> {
  readonly body: Uint8Array;
  readonly sha256: string;
  readonly digest: Digest;
}

export function fromValue(output: unknown): OutputPart {
  const { text, value, precisionLoss } = toJsonText(output);
  return { part: "json", format: "json", body: text, value, isStrictJson: true, ...(precisionLoss ? { precisionLoss } : {}) };
}
