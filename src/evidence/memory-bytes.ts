import type { EvidenceBytes } from "./contract.ts";

export function createMemoryBytes(): EvidenceBytes {
  const kept = new Map<string, Uint8Array>();
  return {
    has: (sha256) => kept.has(sha256),
    put: (sha256, bytes) => void kept.set(sha256, bytes),
    get(sha256) {
      const bytes = kept.get(sha256);
      if (bytes === undefined) throw new RangeError(`nothing is kept as ${sha256}`);
      return bytes;
    },
  };
}
