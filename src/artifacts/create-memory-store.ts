import { createHash } from "node:crypto";
import type { ArtifactStore } from "./contract.ts";

/** For tests and for callers that take artifacts out at once. */
export function createMemoryStore(): ArtifactStore {
  const kept = new Map<string, Uint8Array>();
  return {
    async put({ bytes, type }) {
      const contentHash = createHash("sha256").update(bytes).digest("hex");
      const key = `${contentHash}.${type}`;
      if (!kept.has(key)) kept.set(key, Uint8Array.from(bytes));
      return { contentHash, type, bytes: bytes.length, url: `sluice://artifacts/${contentHash}` };
    },
    async get(contentHash, type) {
      const found = kept.get(`${contentHash}.${type}`);
      return found === undefined ? null : Uint8Array.from(found);
    },
  };
}
