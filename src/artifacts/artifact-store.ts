import type { BlobStore } from "../blobs/blob-store.ts";
import { createFileBlobs } from "../blobs/create-file-blobs.ts";
import { createMemoryBlobs } from "../blobs/create-memory-blobs.ts";
import type { ArtifactStore } from "./stored-artifact.ts";

/** Artifacts in a blob store, as `<sha256>.png` and `<sha256>.json`. */
export function createArtifactStore(blobs: BlobStore, toUrl: (name: string) => string = blobs.url): ArtifactStore {
  return {
    async put({ bytes, type }) {
      const { name, hash: contentHash } = await blobs.put({ content: bytes, ending: `.${type}` });
      return { contentHash, type, bytes: bytes.length, url: toUrl(name) };
    },
    get: (contentHash, type) => blobs.get(`${contentHash}.${type}`),
  };
}

export function createFileStore({ directory }: { directory: string }): ArtifactStore {
  return createArtifactStore(createFileBlobs({ directory, subject: "Artifacts" }));
}

/** For tests and for callers that take artifacts out at once. */
export function createMemoryStore(): ArtifactStore {
  return createArtifactStore(createMemoryBlobs("artifacts"));
}
