/** JSON text in which no number loses a digit. */

/** A value that `JSON.stringify` writes as this text. */
export function rawJson(text: string): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(text);
}

/** The value of JSON text; undefined when it is not JSON. */
export function parseJson(json: string | Uint8Array): unknown {
  try {
    return JSON.parse(typeof json === "string" ? json : new TextDecoder().decode(json));
  } catch {
    return undefined;
  }
}

/** JSON in ASCII only, so that it survives every transport and every repr. */
export function toAsciiJson(value: unknown): string {
  return escapeUnits(JSON.stringify(value), /[\u007f-\uffff]/g);
}

/** Escapes what a terminal takes for a command or some readers for the end of a line, but not the newline. JSON stays JSON of the same value. */
export function escapeControls(text: string): string {
  return escapeUnits(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g);
}

function escapeUnits(text: string, units: RegExp): string {
  return text.replaceAll(units, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Parses JSON and replaces each number by what `toValue` makes of it and its text. JSON that is nested too deeply for that is parsed as it is. */
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

/** JSON text as a value that becomes the same numbers again. For what is only sent on, not computed with. */
export function parseExactJson(json: string): unknown {
  return parseNumbers(json, (value, source) => (JSON.stringify(value) === source ? value : rawJson(source)));
}

/** A number whose text says more than a JavaScript number holds. It is written as JSON with all its digits. */
export class ExactNumber {
  readonly source: string;
  readonly rounded: number;

  private constructor(source: string, rounded: number) {
    this.source = source;
    this.rounded = rounded;
  }

  /** The number itself where it holds everything, else one that remembers its text. */
  static where(value: number, source: string): number | ExactNumber {
    return source.length < 16 || String(value) === source ? value : new ExactNumber(source, value);
  }

  toJSON(): unknown {
    return rawJson(this.source);
  }
}

export interface ParsedText {
  readonly value: unknown;
  /** Whether the text is JSON by the book, so that it can stand inside other JSON. NaN and Infinity, which Python writes and reads, are not. */
  readonly strict: boolean;
}

/** Text up to this size keeps the digits of its long numbers in the value; past it they are shown rounded, and marked. */
export const EXACT_CHARACTERS: number = 1024 * 1024;

/** The value of JSON text as tools and Python send it, with ExactNumbers; null when the text is not JSON. A byte order mark is allowed, as in Python. */
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
  return isExact ? parseNumbers(text, ExactNumber.where) : JSON.parse(text);
}

/** With null for NaN and the infinities outside of strings. */
function parseNonFinite(text: string): ParsedText | null {
  if (!/^\s*[[{]/.test(text) || !/NaN|Infinity/.test(text)) return null;
  try {
    const finite = text.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"|-?Infinity|NaN/g, (found) => (found.startsWith('"') ? found : "null"));
    return { value: parseKeepingDigits(finite), strict: false };
  } catch {
    return null;
  }
}

export interface ScannedMessage {
  /** Has an id and no method. */
  readonly isResponse: boolean;
  /** The text of `result.structuredContent`, exactly as sent. */
  readonly structuredJson: string | undefined;
}

/**
 * Finds the text of `structuredContent` in the text of a JSON-RPC message, without parsing what is in it. The text must be valid JSON: what it says of
 * other text means nothing, or is a SyntaxError. It takes a third of the time of JSON.parse.
 */
export function scanMessage(text: string): ScannedMessage {
  const names = new Set<string | number>();
  let structuredJson: string | undefined;
  forEachPart(text, 0, (name, start) => {
    names.add(name);
    if (name !== "result" || text[start] !== "{") return endOfValue(text, start);
    structuredJson = undefined; // of a name that comes twice the last one counts, as for JSON.parse
    return forEachPart(text, start, (inner, from) => {
      const end = endOfValue(text, from);
      if (inner === "structuredContent") structuredJson = text.slice(from, end);
      return end;
    });
  });
  return { isResponse: names.has("id") && !names.has("method"), structuredJson };
}

/** Tells the name or index of each part of the value at `start` and where the part begins, and is told where it ends. Gives the end of the value. */
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

/** Past the value at `start`; `stop` when it does not end before that. */
export function endOfValue(text: string, start: number, stop: number = text.length): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return endOfString(text, start);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return endOfBareWord(text, start);
  // Strings are passed over here and not in a function of their own: this loop sees every character of a large answer.
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

/** Past the closing quote. */
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
