export interface ScannedJson {
  /** Which limit the text is over; the rest of it was not looked at then. */
  readonly over: "depth" | "values" | null;
  /** The first integer that a number of JavaScript does not hold exactly, cut where it is very long. */
  readonly inexact: string | null;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const INTEGER_CHARACTERS = 16;

/** One pass over JSON text before anything is made of it. What is no JSON is for the parser to find. */
export function scanJson(json: string, limits: { readonly depth: number; readonly values: number }): ScannedJson {
  let depth = 0;
  let values = 1;
  let inexact: string | null = null;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfText(json, at);
    else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      values += 1;
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
    else if (code === 0x2c) values += 1;
    else if (isDigit(code)) {
      const end = endOfNumber(json, at);
      if (end - at >= INTEGER_CHARACTERS) inexact ??= inexactIn(json, at, end);
      at = end - 1;
    }
    if (depth > limits.depth) return { over: "depth", inexact };
    if (values > limits.values) return { over: "values", inexact };
  }
  return { over: null, inexact };
}

function endOfText(json: string, start: number): number {
  let at = start + 1;
  for (let code = json.charCodeAt(at); at < json.length && code !== QUOTE; code = json.charCodeAt(at)) at += code === BACKSLASH ? 2 : 1;
  return at;
}

function endOfNumber(json: string, start: number): number {
  let at = start;
  while (at < json.length && isOfNumber(json.charCodeAt(at))) at += 1;
  return at;
}

function inexactIn(json: string, start: number, end: number): string | null {
  const text = json.slice(json[start - 1] === "-" ? start - 1 : start, end);
  return /^-?\d+$/.test(text) && !Number.isSafeInteger(Number(text)) ? text.slice(0, 400) : null;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Digits and `.eE+-`. */
function isOfNumber(code: number): boolean {
  return isDigit(code) || code === 0x2e || code === 0x65 || code === 0x45 || code === 0x2b || code === 0x2d;
}
