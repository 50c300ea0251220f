import { isBlobName, isDraftName, type BlobFacts, type BlobStore } from "./blob-store.ts";

/** Deletes blobs and drafts. Also deletes files that share a blob's name: older versions kept a dataset's index and Parquet tables beside it. */
export function deleteBlobs(store: BlobStore, names: readonly string[]): void {
  for (const name of names.filter(isDraftName)) store.delete(name);
  for (const name of names.filter(isBlobName)) for (const blob of store.list(name)) store.delete(blob.name);
}

export interface UnusedOptions {
  readonly olderThanMs: number;
  readonly inUse: readonly string[];
  /** Maps a blob's name to the key that `inUse` lists, for example its hash. Default: the whole name. */
  readonly toKey?: (name: string) => string;
}

/** Lists the keys that nothing refers to and whose blobs are all old, for example leftovers of a killed server. */
export function listUnused(store: BlobStore, { olderThanMs, inUse, toKey = (name) => name }: UnusedOptions): string[] {
  const kept = new Set(inUse);
  const blobs = store.list().filter(({ isDraft }) => !isDraft);
  for (const blob of blobs) if (!isOld(blob, olderThanMs)) kept.add(toKey(blob.name));
  return [...new Set(blobs.map(({ name }) => toKey(name)))].filter((key) => !kept.has(key)).sort();
}

/** Deletes drafts that killed writers left behind and returns how many there were. */
export function removeOldDrafts(store: BlobStore, olderThanMs: number, prefix = ""): number {
  const drafts = store.list(prefix).filter((blob) => blob.isDraft && isOld(blob, olderThanMs));
  for (const { name } of drafts) store.delete(name);
  return drafts.length;
}

function isOld({ modifiedAt }: BlobFacts, olderThanMs: number): boolean {
  return Date.now() - modifiedAt.getTime() > olderThanMs;
}
