/**
 * What parsing the text in a request may take at most, from one pass over its characters: each bracket may be an object, each colon a field, each comma a
 * value, and the text itself is held a few times over. A parser that runs out of memory takes the whole process with it, so it must not come to that.
 */
export function estimateHeapBytes(request: unknown): number {
  if (typeof request === "string") return weigh(request.length, (at) => request.charCodeAt(at));
  if (request instanceof Uint8Array) return weigh(request.length, (at) => request[at]!);
  if (typeof request !== "object" || request === null) return 8;
  return Object.values(request).reduce<number>((sum, part) => sum + estimateHeapBytes(part), OBJECT_BYTES);
}

const OBJECT_BYTES = 64;
const FIELD_BYTES = 80;
const VALUE_BYTES = 32;
const TEXT_COPIES = 8;

/** More than this it cannot be. For most requests that is enough to know, and their text need not be looked at. */
export function mostHeapBytes(request: unknown): number {
  if (typeof request === "string" || request instanceof Uint8Array) return request.length * (TEXT_COPIES + FIELD_BYTES);
  if (typeof request !== "object" || request === null) return 8;
  return Object.values(request).reduce<number>((sum, part) => sum + mostHeapBytes(part), OBJECT_BYTES);
}

/** What is in strings counts as well: it may be JSON that is parsed after them. */
function weigh(length: number, codeAt: (at: number) => number): number {
  let bytes = length * TEXT_COPIES;
  for (let at = 0; at < length; at += 1) {
    const code = codeAt(at);
    if (code === 0x2c) bytes += VALUE_BYTES;
    else if (code === 0x3a) bytes += FIELD_BYTES;
    else if (code === 0x5b || code === 0x7b) bytes += OBJECT_BYTES;
  }
  return bytes;
}
