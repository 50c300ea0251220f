/**
 * Bytes under names that begin with their sha256: written once, atomically, never changed. Artifacts, datasets, uploads and evidence are stored in
 * one of these. Every implementation passes the suite in test/blob-store-contract.ts. Listing and deleting are synchronous because they run inside a
 * transaction of the history.
 */
export interface BlobStore {
  /**
   * Stores bytes under their sha256. Storing the same bytes again repairs a damaged blob and resets its age. Rejects with STORAGE_UNAVAILABLE, or with
   * the error of the content stream; in both cases no partial blob remains.
   */
  put(blob: NewBlob): Promise<StoredBlob>;
  /** Returns the bytes after checking them against their name, or null if the blob does not exist. Rejects with ARTIFACT_DAMAGED. */
  get(name: string): Promise<Uint8Array | null>;
  /** Returns the bytes without checking them. Throws EVIDENCE_MISSING. */
  read(name: string): Uint8Array;
  /** Yields the bytes in chunks without checking them. Throws EVIDENCE_MISSING. */
  stream(name: string, range?: { readonly offset: number; readonly length: number }): AsyncIterable<Uint8Array>;
  has(name: string): boolean;
  delete(name: string): void;
  /** Lists blobs and drafts whose name starts with `prefix`. The name of a draft starts with its folder, usually `drafts`. */
  list(prefix?: string): BlobFacts[];
  url(name: string): string;
}

export interface NewBlob {
  readonly content: Uint8Array | AsyncIterable<Uint8Array>;
  /** The sha256 if the caller knows it; it is not checked. Default: computed from the content. */
  readonly hash?: string | undefined;
  /** File extension with its dot. The same bytes as `.png` and as `.json` are two blobs. */
  readonly extension?: string | undefined;
}

export interface StoredBlob {
  readonly name: string;
  readonly hash: string;
  readonly bytes: number;
}

export interface BlobFacts {
  readonly name: string;
  readonly bytes: number;
  readonly modifiedAt: Date;
  /** An incomplete blob: its writer is still running, or was killed. */
  readonly isDraft: boolean;
}

/** Whether the name is a sha256 with optional extensions. Such a name cannot lead out of a directory. */
export function isBlobName(name: string): boolean {
  return /^[0-9a-f]{64}(?:\.\w+)*$/.test(name);
}

/** Whether the name is a draft's, optionally in one folder. Such a name cannot lead out of a directory. */
export function isDraftName(name: string): boolean {
  return /^(?:\w+\/)?[\w.]+\.part(?:-index)?$/.test(name);
}
