import type { EvidenceBytes } from "./contract.ts";

/** Text longer than this is encoded a moment later: whoever waits for its preview does not wait for that. */
const LONG_CHARACTERS = 1024 * 1024;
/** As bytes, text that is not longer than this would take more memory. */
const TINY_CHARACTERS = 256;

export function createMemoryBytes(): EvidenceBytes {
  const kept = new Map<string, string | Uint8Array>();

  function get(alias: string): Uint8Array {
    const body = kept.get(alias);
    if (body === undefined) throw new RangeError(`nothing is kept as ${alias}`);
    if (typeof body !== "string") return body;
    const bytes = Buffer.from(body, "utf8");
    if (body.length > TINY_CHARACTERS) kept.set(alias, bytes); // outside of the heap, whose size is limited
    return bytes;
  }

  return {
    put(alias, body) {
      kept.set(alias, body);
      if (typeof body === "string" && body.length > LONG_CHARACTERS) setImmediate(get, alias);
      else if (body.length > TINY_CHARACTERS) get(alias);
    },
    get,
  };
}
