import type { BlobStore } from "./blob-store.ts";
import { damagedBlob, hashBytes, missingBlob } from "./create-file-blobs.ts";

/** A store in memory, for tests and for callers that take blobs out right away. `kind` is the host part of the blobs' URLs. */
export function createMemoryBlobs(kind: string): BlobStore {
  const blobs = new Map<string, { bytes: Uint8Array; modifiedAt: Date }>();
  const read = (name: string): Uint8Array => {
    const blob = blobs.get(name);
    if (blob === undefined) throw missingBlob(name);
    return blob.bytes;
  };
  return {
    async put({ content, hash, extension = "" }) {
      const bytes = content instanceof Uint8Array ? Uint8Array.from(content) : Buffer.concat(await Array.fromAsync(content));
      const contentHash = hash ?? (await hashBytes(bytes));
      blobs.set(`${contentHash}${extension}`, { bytes, modifiedAt: new Date() });
      return { name: `${contentHash}${extension}`, hash: contentHash, bytes: bytes.length };
    },
    async get(name) {
      const blob = blobs.get(name);
      if (blob === undefined) return null;
      if ((await hashBytes(blob.bytes)) !== name.slice(0, 64)) throw damagedBlob(name);
      return Uint8Array.from(blob.bytes);
    },
    read,
    async *stream(name, range) {
      yield range === undefined ? read(name) : read(name).subarray(range.offset, range.offset + range.length);
    },
    has: (name) => blobs.has(name),
    delete: (name) => void blobs.delete(name),
    list: (prefix = "") =>
      [...blobs].flatMap(([name, { bytes, modifiedAt }]) =>
        name.startsWith(prefix) ? [{ name, bytes: bytes.length, modifiedAt, isDraft: false }] : [],
      ),
    url: (name) => `sluice://${kind}/${name.slice(0, 64)}`,
  };
}
