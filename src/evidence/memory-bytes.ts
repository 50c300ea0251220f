import type { EvidenceBytes } from "./contract.ts";

export function createMemoryBytes(): EvidenceBytes {
  const kept = new Map<string, Uint8Array>();
  return {
    put: (alias, bytes) => void kept.set(alias, bytes),
    get(alias) {
      const bytes = kept.get(alias);
      if (bytes === undefined) throw new RangeError(`nothing is kept as ${alias}`);
      return bytes;
    },
  };
}
