import type { EvidenceFormat, PrecisionLoss } from "./contract.ts";
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
  readonly precisionLoss?: PrecisionLoss;
}

export function fromValue(output: unknown): OutputPart {
  const { text, value, precisionLoss } = toJsonText(output);
  return { part: "json", format: "json", body: text, value, isStrictJson: true, ...(precisionLoss ? { precisionLoss } : {}) };
}
