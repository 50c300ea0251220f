import v8 from "node:v8";
import { transcode } from "node:buffer";
import { UsageError } from "../errors/sluice-error.ts";
import { rawJson } from "../text/json.ts";
import type { PrecisionLoss } from "./evidence-store.ts";

export interface JsonText {
  readonly text: string;
  /** The value as Python will see it. */
  readonly value: unknown;
  readonly precisionLoss?: PrecisionLoss;
}

/** JSON text of a value that reached us parsed, and what that value cannot vouch for. Of type bigint, integers keep their digits. */
export function toJsonText(value: unknown): JsonText {
  const text = write(value); // first: it refuses cycles
  const { isPlain, ...precisionLoss } = inspect(value);
  const isLossless = Object.values(precisionLoss).every((count) => count === 0);
  return { text, value: isPlain ? value : JSON.parse(text), ...(isLossless ? {} : { precisionLoss }) };
}

function write(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch {
    return writeWithBigIntegers(value);
  }
}

function writeWithBigIntegers(value: unknown): string {
  try {
    return JSON.stringify(value, (_key, item: unknown) => (typeof item === "bigint" ? rawJson(String(item)) : item)) ?? "null";
  } catch (cause) {
    throw new UsageError({
      code: "EVIDENCE_NOT_JSON",
      message: `The output has no JSON form: ${cause instanceof Error ? cause.message.split("\n")[0] : String(cause)}.`,
      cause,
    });
  }
}

interface Found extends PrecisionLoss {
  integersPast2To53: number;
  nonFinite: number;
  unrepresentable: number;
  /** Whether the value is JSON already: nothing that its text would turn into something else. */
  isPlain: boolean;
}

/** Without recursion, because JSON may be nested deeper than the stack. */
function inspect(root: unknown): Found {
  const found: Found = { integersPast2To53: 0, nonFinite: 0, unrepresentable: 0, isPlain: true };
  const open: unknown[] = [root];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "object" && value !== null) openUp(value, open, found);
    else inspectScalar(value, found);
  }
  return found;
}

function openUp(value: object, open: unknown[], found: Found): void {
  if (Array.isArray(value)) {
    for (const item of value) openItem(item, open, found);
    return;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    found.isPlain = false;
    if (!("toJSON" in value)) found.unrepresentable += 1;
    return;
  }
  if ("toJSON" in value && typeof value.toJSON === "function") found.isPlain = false;
  for (const key in value) openItem((value as Record<string, unknown>)[key], open, found);
}

/** Only what can hold more waits; a large value is mostly scalars. */
function openItem(item: unknown, open: unknown[], found: Found): void {
  if (typeof item === "object" && item !== null) open.push(item);
  else if (typeof item !== "string") inspectScalar(item, found);
}

function inspectScalar(value: unknown, found: Found): void {
  if (typeof value === "number") {
    if (!Number.isFinite(value)) found.nonFinite += 1;
    else if (Number.isInteger(value) && !Number.isSafeInteger(value)) found.integersPast2To53 += 1;
  } else if (typeof value === "bigint") {
    found.isPlain = false;
  } else if (value === undefined) {
    found.isPlain = false; // left out, as JSON does
  } else if (typeof value === "function" || typeof value === "symbol") {
    found.isPlain = false;
    found.unrepresentable += 1;
  }
}

const PIECE_CHARACTERS = 32_768;

/**
 * The size of a text as UTF-8; null when it has unpaired surrogates, which UTF-8 cannot hold. Text beyond Latin-1 is transcoded in pieces:
 * `Buffer.byteLength` and `isWellFormed` together take twice as long as parsing it.
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
      bytes += transcode(piece.subarray(0, written), "utf16le", "utf8").length;
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
