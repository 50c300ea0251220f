import type { BlobStore } from "../blobs/blob-store.ts";
import { createFileBlobs } from "../blobs/create-file-blobs.ts";
import { createMemoryBlobs } from "../blobs/create-memory-blobs.ts";

export type ArtifactType = "png" | "json";

interface StoredArtifact {
  readonly contentHash: string;
  readonly type: ArtifactType;
  readonly bytes: number;
  readonly url: string;
}

/** The bytes of artifacts by their sha256: written once, atomically, never changed. Every store passes the suite in test/artifact-store-contract.ts. */
export interface ArtifactStore {
  /** Stores the bytes under their sha256; storing the same bytes again changes nothing. Rejects with STORAGE_UNAVAILABLE and leaves no partial artifact. */
  put(content: { readonly bytes: Uint8Array; readonly type: ArtifactType }): Promise<StoredArtifact>;
  /** Returns the bytes after checking them against their hash, or null if there are none. */
  get(contentHash: string, type: ArtifactType): Promise<Uint8Array | null>;
}

/** Stores artifacts in a blob store as `<sha256>.png` and `<sha256>.json`. */
export function createArtifactStore(blobs: BlobStore, toUrl = (name: string): string => blobs.url(name)): ArtifactStore {
  return {
    async put({ bytes, type }) {
      const { name, hash: contentHash } = await blobs.put({ content: bytes, extension: `.${type}` });
      return { contentHash, type, bytes: bytes.length, url: toUrl(name) };
    },
    get: (contentHash, type) => blobs.get(`${contentHash}.${type}`),
  };
}

export function createFileStore({ directory }: { directory: string }): ArtifactStore {
  return createArtifactStore(createFileBlobs({ directory, subject: "Artifacts" }));
}

/** A store in memory, for tests and for callers that take artifacts out right away. */
export function createMemoryStore(): ArtifactStore {
  return createArtifactStore(createMemoryBlobs("artifacts"));
}
