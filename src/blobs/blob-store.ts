/**
 * Bytes under names that begin with a sha256: written once, atomically, never changed. Artifacts, datasets, uploads and evidence are thin uses of it. One suite
 * (test/blob-store-contract.ts) holds every store to this. What looks and deletes is synchronous, because it runs inside of the history's transaction.
 */
export interface BlobStore {
  /**
   * Keeps bytes under their sha256. Keeping the same again makes it count as new, and repairs what was damaged. Rejects with STORAGE_UNAVAILABLE, or with what the
   * content throws; then nothing is half-written.
   */
  put(blob: NewBlob): Promise<StoredBlob>;
  /** The bytes, checked against their name; null when there are none. Rejects with ARTIFACT_DAMAGED. */
  get(name: string): Promise<Uint8Array | null>;
  /** The bytes at once, unchecked. Throws EVIDENCE_MISSING. */
  read(name: string): Uint8Array;
  /** The bytes in pieces, unchecked. Throws EVIDENCE_MISSING. */
  stream(name: string, range?: { readonly offset: number; readonly length: number }): AsyncIterable<Uint8Array>;
  has(name: string): boolean;
  delete(name: string): void;
  /** Everything whose name begins like this; the names of drafts begin with the folder that they are in, most often `drafts`. */
  list(prefix?: string): BlobFacts[];
  url(name: string): string;
}

export interface NewBlob {
  readonly content: Uint8Array | AsyncIterable<Uint8Array>;
  /** The caller vouches for it. Worked out unless given. */
  readonly hash?: string | undefined;
  /** Of the name, with its dot: the same bytes as `.png` and as `.json` are two blobs. */
  readonly ending?: string | undefined;
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
  /** Not whole: its writer is at work, or was killed. */
  readonly isDraft: boolean;
}

/** A sha256, and maybe an ending: no way out of a directory. */
export function isBlobName(name: string): boolean {
  return /^[0-9a-f]{64}(?:\.\w+)*$/.test(name);
}

/** Maybe with a folder: no way out of a directory, either. */
export function isDraftName(name: string): boolean {
  return /^(?:\w+\/)?[\w.]+\.part(?:-index)?$/.test(name);
}
