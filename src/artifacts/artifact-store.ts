import type { BlobStore } from "../blobs/blob-store.ts";
import { createFileBlobs } from "../blobs/create-file-blobs.ts";
import { createMemoryBlobs } from "../blobs/create-memory-blobs.ts";
import type { StoredBytes } from "../protocol/artifact.ts";

export type ArtifactType = "png" | "json";

export interface NewArtifact {
  readonly bytes: Uint8Array;
  /** `json`: a chart, or the data behind a picture. */
  readonly type: ArtifactType;
  /** For metrics only. */
  readonly isFigureData?: boolean;
}

interface StoredArtifact {
  readonly contentHash: string;
  readonly type: ArtifactType;
  readonly bytes: number;
  readonly url: string;
}

/** The bytes of artifacts by their sha256: written once, atomically, never changed. Every store passes the suite in test/artifact-store-contract.ts. */
export interface ArtifactStore {
  /** Stores the bytes under their sha256; storing the same bytes again changes nothing. Rejects with STORAGE_UNAVAILABLE and leaves no partial artifact. */
  put(content: NewArtifact): Promise<StoredArtifact>;
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

/** Where the bytes of an artifact are, as its envelope says. */
export function toStoredBytes({ contentHash, url, bytes }: StoredArtifact): StoredBytes {
  return { contentHash, url, bytes };
}

export function createFileStore({ directory }: { directory: string }): ArtifactStore {
  return createArtifactStore(createFileBlobs({ directory, subject: "Artifacts" }));
}

/** A store in memory, for tests and for callers that take artifacts out right away. */
export function createMemoryStore(): ArtifactStore {
  return createArtifactStore(createMemoryBlobs("artifacts"));
}
