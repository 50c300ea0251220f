import { isBlobName, isDraftName, type BlobFacts, type BlobStore } from "./blob-store.ts";

/** Removes blobs and drafts. With a blob goes what lies beside it under the same name: an older dataset has an index and Parquet tables there. */
export function deleteBlobs(store: BlobStore, names: readonly string[]): void {
  for (const name of names.filter(isDraftName)) store.delete(name);
  for (const name of names.filter(isBlobName)) for (const found of store.list(name)) store.delete(found.name);
}

export interface UnusedOptions {
  readonly olderThanMs: number;
  readonly inUse: readonly string[];
  /** What of a name is referred to: all of it, or its hash. */
  readonly toKey?: (name: string) => string;
}

/** What nothing refers to, once all of it is old: what a server that was killed, or a client that is gone for long, left. */
export function listUnused(store: BlobStore, { olderThanMs, inUse, toKey = (name) => name }: UnusedOptions): string[] {
  const kept = new Set(inUse);
  const blobs = store.list().filter(({ isDraft }) => !isDraft);
  for (const blob of blobs) if (!isOld(blob, olderThanMs)) kept.add(toKey(blob.name));
  return [...new Set(blobs.map(({ name }) => toKey(name)))].filter((key) => !kept.has(key)).sort();
}

/** Removes what writers that were killed left; says how many there were. */
export function removeOldDrafts(store: BlobStore, olderThanMs: number, prefix = ""): number {
  const drafts = store.list(prefix).filter((blob) => blob.isDraft && isOld(blob, olderThanMs));
  deleteBlobs(
    store,
    drafts.map(({ name }) => name),
  );
  return drafts.length;
}

function isOld({ modifiedAt }: BlobFacts, olderThanMs: number): boolean {
  return Date.now() - modifiedAt.getTime() > olderThanMs;
}
