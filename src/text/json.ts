/** Whether a value is an object and not an array: what JSON calls an object. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a value that `JSON.stringify` writes as the given text, unchanged. */
export function rawJson(text: string): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(text);
}

/** Parses JSON. Returns undefined if the text is not JSON. */
export function parseJson(json: string | Uint8Array): unknown {
  try {
    return JSON.parse(typeof json === "string" ? json : new TextDecoder().decode(json));
  } catch {
    return undefined;
  }
}

/** Writes JSON in ASCII only, so that every transport and every `repr` preserves it. */
export function toAsciiJson(value: unknown): string {
  return escapeUnits(JSON.stringify(value), /[\u007f-\uffff]/g);
}

/** Escapes control characters, Unicode line separators and direction marks, but not the newline. The value of a JSON text does not change. */
export function escapeControls(text: string): string {
  return escapeUnits(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g);
}

function escapeUnits(text: string, units: RegExp): string {
  return text.replaceAll(units, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Parses JSON and replaces each number with the result of `toValue(number, its text)`. JSON that is nested too deeply for a reviver is parsed without it. */
export function parseNumbers(json: string, toValue: (value: number, source: string) => unknown): unknown {
  const revive = (_key: string, value: unknown, { source }: { source?: string }): unknown =>
    typeof value === "number" && source !== undefined ? toValue(value, source) : value;
  try {
    return JSON.parse(json, revive as Parameters<typeof JSON.parse>[1]);
  } catch (error) {
    if (error instanceof RangeError) return JSON.parse(json);
    throw error;
  }
}

/** Parses JSON so that `JSON.stringify` writes every number with its original digits. For values that are passed on, not computed with. */
export function parseExactJson(json: string): unknown {
  return parseNumbers(json, (value, source) => (JSON.stringify(value) === source ? value : rawJson(source)));
}

/** A number with more digits than a JavaScript number can hold. `JSON.stringify` writes all of its digits. */
export class ExactNumber {
  readonly source: string;
  readonly rounded: number;

  private constructor(source: string, rounded: number) {
    this.source = source;
    this.rounded = rounded;
  }

  /** Returns the plain number if it is exact, otherwise an ExactNumber. */
  static from(value: number, source: string): number | ExactNumber {
    return source.length < 16 || String(value) === source ? value : new ExactNumber(source, value);
  }

  toJSON(): unknown {
    return rawJson(this.source);
  }
}

export interface ParsedText {
  readonly value: unknown;
  /** Whether the text is strict JSON and can be embedded in other JSON. False for NaN and Infinity, which Python writes, and for a byte order mark. */
  readonly strict: boolean;
}

/** Up to this size, parsing keeps all digits of long numbers. In larger texts they are rounded, and the preview says so. */
export const EXACT_CHARACTERS: number = 1024 * 1024;

/** Parses JSON as tools and Python write it, with ExactNumbers. Accepts a byte order mark, NaN and Infinity. Returns null if the text is not JSON. */
export function parseJsonText(sent: string): ParsedText | null {
  const text = sent.startsWith("\uFEFF") ? sent.slice(1) : sent;
  if (!/^[ \t\r\n]*[[{"\-\dtfn]/.test(text)) return null;
  try {
    return { value: parseKeepingDigits(text), strict: text === sent };
  } catch {
    return parseNonFinite(text);
  }
}

function parseKeepingDigits(text: string): unknown {
  const isExact = text.length <= EXACT_CHARACTERS && /\d{16}|\d\.\d{15}/.test(text);
  return isExact ? parseNumbers(text, ExactNumber.from) : JSON.parse(text);
}

/** Parses with null in place of NaN and Infinity. */
function parseNonFinite(text: string): ParsedText | null {
  if (!/^\s*[[{]/.test(text) || !/NaN|Infinity/.test(text)) return null;
  try {
    const finite = text.replaceAll(/"[^"\\]*(?:\\[^][^"\\]*)*(?:"|\\?$)|-?Infinity|NaN/g, (found) =>
      found.startsWith('"') ? found : "null",
    );
    return { value: parseKeepingDigits(finite), strict: false };
  } catch {
    return null;
  }
}

export interface ScannedMessage {
  /** Whether the message has an id and no method. */
  readonly isResponse: boolean;
  /** The text of `result.structuredContent`, exactly as sent. */
  readonly structuredJson: string | undefined;
}

/**
 * Finds the text of `structuredContent` in a JSON-RPC message without parsing its content, in a third of the time of JSON.parse. The text must be valid
 * JSON; for any other text the result is meaningless, or a SyntaxError is thrown.
 */
export function scanMessage(text: string): ScannedMessage {
  const names = new Set<string | number>();
  let structuredJson: string | undefined;
  forEachPart(text, 0, (name, start) => {
    names.add(name);
    if (name !== "result" || text[start] !== "{") return endOfValue(text, start);
    structuredJson = undefined; // the last of repeated keys wins, as in JSON.parse
    return forEachPart(text, start, (inner, from) => {
      const end = endOfValue(text, from);
      if (inner === "structuredContent") structuredJson = text.slice(from, end);
      return end;
    });
  });
  return { isResponse: names.has("id") && !names.has("method"), structuredJson };
}

/** Calls `visit` with the key or index and the start of each member of the value at `start`; `visit` returns the end of the member. Returns the end of the value. */
export function forEachPart(text: string, start: number, visit: (key: string | number, start: number) => number): number {
  const open = skipSpace(text, start);
  const isList = text[open] === "[";
  if (!isList && text[open] !== "{") return endOfValue(text, open);
  let at = skipSpace(text, open + 1);
  for (let index = 0; isList ? text[at] !== "]" : text[at] === '"'; index += 1) {
    const nameEnd = isList ? at : endOfString(text, at);
    const key = isList ? index : (JSON.parse(text.slice(at, nameEnd)) as string);
    at = skipSpace(text, visit(key, isList ? at : skipSpace(text, skipSpace(text, nameEnd) + 1))); // past the colon
    if (text[at] !== ",") break;
    at = skipSpace(text, at + 1);
  }
  return at + 1;
}

/** Returns the position after the value at `start`, or `stop` if the value does not end before it. */
export function endOfValue(text: string, start: number, stop: number = text.length): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return endOfString(text, start);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return endOfBareWord(text, start);
  // Strings are skipped inline, without a function call: this loop visits every character of a large response.
  let depth = 0;
  for (let at = start; at < stop; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      for (at += 1; at < stop; at += 1) {
        const inner = text.charCodeAt(at);
        if (inner === QUOTE) break;
        if (inner === BACKSLASH) at += 1;
      }
    } else if (unit === OPEN_BRACE || unit === OPEN_BRACKET) depth += 1;
    else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return stop;
}

/** Returns the position after the closing quote. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return at + 1;
    if (unit === BACKSLASH) at += 1;
  }
  return text.length;
}

function endOfBareWord(text: string, start: number): number {
  let at = start;
  while (at < text.length && !",}] \t\r\n".includes(text[at]!)) at += 1;
  return at;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && " \t\r\n".includes(text[at]!)) at += 1;
  return at;
}

const QUOTE = 34;
const BACKSLASH = 92;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
