import { createHash } from "node:crypto";
import type { BlobStore } from "./blob-store.ts";
import { damaged, missing } from "./create-file-blobs.ts";

/** For tests, and for callers that take blobs out at once. `kind` is the first part of a blob's address. */
export function createMemoryBlobs(kind: string): BlobStore {
  const kept = new Map<string, { bytes: Uint8Array; modifiedAt: Date }>();
  const find = (name: string): Uint8Array => {
    const found = kept.get(name);
    if (found === undefined) throw missing(name);
    return found.bytes;
  };
  return {
    async put({ content, hash, ending = "" }) {
      const bytes = content instanceof Uint8Array ? Uint8Array.from(content) : Buffer.concat(await Array.fromAsync(content));
      const named = hash ?? hashOf(bytes);
      kept.set(`${named}${ending}`, { bytes, modifiedAt: new Date() });
      return { name: `${named}${ending}`, hash: named, bytes: bytes.length };
    },
    async get(name) {
      const found = kept.get(name);
      if (found === undefined) return null;
      if (hashOf(found.bytes) !== name.slice(0, 64)) throw damaged(name.slice(0, 64));
      return Uint8Array.from(found.bytes);
    },
    read: find,
    async *stream(name, range) {
      yield range === undefined ? find(name) : find(name).subarray(range.offset, range.offset + range.length);
    },
    has: (name) => kept.has(name),
    delete: (name) => void kept.delete(name),
    list: (prefix = "") =>
      [...kept].flatMap(([name, { bytes, modifiedAt }]) =>
        name.startsWith(prefix) ? [{ name, bytes: bytes.length, modifiedAt, isDraft: false }] : [],
      ),
    url: (name) => `sluice://${kind}/${name.slice(0, 64)}`,
  };
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
