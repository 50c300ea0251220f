import { ExactNumber } from "./exact-number.ts";

export interface ParsedText {
  readonly value: unknown;
  /** Whether the text is JSON by the book, so that it can stand inside other JSON. NaN and Infinity, which Python writes and reads, are not. */
  readonly strict: boolean;
}

/** Text up to this size keeps the digits of its long numbers in the value; past it they are shown rounded, and marked. */
export const EXACT_CHARACTERS: number = 1024 * 1024;

/** The value of JSON text, or null when the text is not JSON. A byte order mark is allowed, as in Python. */
export function parseJsonText(sent: string): ParsedText | null {
  const text = sent.startsWith("\uFEFF") ? sent.slice(1) : sent;
  if (!/^[ \t\r\n]*[[{"\-\dtfn]/.test(text)) return null;
  const strict = tryParse(text);
  if (strict !== undefined) return { value: strict, strict: text === sent };
  const finite = /^\s*[[{]/.test(text) ? nullNonFinite(text) : null;
  const lenient = finite === null ? undefined : tryParse(finite);
  return lenient === undefined ? null : { value: lenient, strict: false };
}

function tryParse(text: string): unknown {
  const isExact = text.length <= EXACT_CHARACTERS && /\d{16}|\d\.\d{15}/.test(text);
  try {
    return isExact ? JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown) : JSON.parse(text);
  } catch (error) {
    return isExact && error instanceof RangeError ? JSON.parse(text) : undefined; // nested too deep for a function to follow
  }
}

function keepDigits(_key: string, value: unknown, context: { source?: string }): unknown {
  return typeof value === "number" && context.source !== undefined ? ExactNumber.where(value, context.source) : value;
}

/** The text with null for NaN and the infinities outside of strings, or null when there are none. */
function nullNonFinite(text: string): string | null {
  if (!/NaN|Infinity/.test(text)) return null;
  let out = "";
  let from = 0;
  for (let open = text.indexOf('"'); open !== -1; open = text.indexOf('"', from)) {
    const close = endOfString(text, open);
    out += toNulls(text.slice(from, open)) + text.slice(open, close);
    from = close;
  }
  return out + toNulls(text.slice(from));
}

function toNulls(between: string): string {
  return between.replaceAll(/-?Infinity|NaN/g, "null");
}

function endOfString(text: string, open: number): number {
  for (let at = open + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x5c) at += 1;
    else if (code === 0x22) return at + 1;
  }
  return text.length;
}
