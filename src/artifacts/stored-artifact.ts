/** Content-addressed bytes of artifacts: written once, atomically, never changed. One suite (test/artifact-store-contract.ts) holds every store to this. */

export type ArtifactType = "png" | "json";

export interface StoredArtifact {
  readonly contentHash: string;
  readonly type: ArtifactType;
  readonly bytes: number;
  readonly url: string;
}

export interface ArtifactStore {
  /** Keeps the bytes under their sha256. Keeping the same again changes nothing. Rejects with STORAGE_UNAVAILABLE, and then nothing is half-written. */
  put(content: { readonly bytes: Uint8Array; readonly type: ArtifactType }): Promise<StoredArtifact>;
  /** The bytes, checked against their name; null when there are none. */
  get(contentHash: string, type: ArtifactType): Promise<Uint8Array | null>;
}
