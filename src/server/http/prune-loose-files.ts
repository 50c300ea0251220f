import path from "node:path";
import type { BlobFacts, BlobStore } from "../../blobs/blob-store.ts";
import { createFileBlobs } from "../../blobs/create-file-blobs.ts";
import { deleteBlobs } from "../../blobs/delete-blobs.ts";
import { readLastUses } from "../../evidence/dataset/create-dataset-store.ts";

export interface LooseFilesOptions {
  /** Where `sluice ask` and `sluice mcp` keep artifacts, and datasets below it. */
  readonly directory: string;
  /** Not used since then. */
  readonly tooOld: Date;
  readonly maxBytes: number;
  /** What is younger may be in use. */
  readonly untouchedSince: Date;
  readonly isDryRun: boolean;
}

export interface PrunedFiles {
  readonly expired: number;
  readonly overQuota: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

interface Found extends BlobFacts {
  readonly store: BlobStore;
  /** How many go together. */
  readonly files: number;
}

/** FileNames that no history knows of, because those who made them keep none: their age is all that there is to go by. */
export async function pruneLooseFiles({ directory, tooOld, maxBytes, untouchedSince, isDryRun }: LooseFilesOptions): Promise<PrunedFiles> {
  const artifacts = createFileBlobs({ directory, subject: "Artifacts" });
  const datasets = createFileBlobs({ directory: path.join(directory, "datasets"), subject: "The dataset" });
  const usedAt = await readLastUses(datasets); // before the files are listed: what is kept again meanwhile is young by then
  const files = [...list(artifacts), ...together(list(datasets))].map((file) => ({
    ...file,
    modifiedAt: later(file.modifiedAt, usedAt.get(file.name)),
  }));
  // An output goes after the last manifest that refers to it.
  files.sort((a, b) => a.modifiedAt.getTime() - b.modifiedAt.getTime() || Number(usedAt.has(a.name)) - Number(usedAt.has(b.name)));
  const bytesBefore = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const counts = { expired: 0, overQuota: 0, bytesBefore, bytesAfter: bytesBefore };
  for (const { store, name, bytes, modifiedAt, files: count } of files) {
    const isExpired = modifiedAt < tooOld;
    if (modifiedAt >= untouchedSince || (!isExpired && counts.bytesAfter <= maxBytes)) break; // the rest is younger
    if (!isDryRun) deleteBlobs(store, [name]);
    counts.bytesAfter -= bytes;
    counts[isExpired ? "expired" : "overQuota"] += count;
  }
  return counts;
}

function list(store: BlobStore): Found[] {
  return store.list().map((blob) => ({ ...blob, store, files: 1 }));
}

/** A manifest, and the document, index and tables of an older version, go together under their hash, with the youngest of them. */
function together(files: readonly Found[]): Found[] {
  const groups = Object.groupBy(files, ({ name, isDraft }) => (isDraft ? name : name.slice(0, 64)));
  return Object.values(groups).map((group) =>
    group!.reduce((all, one) => ({
      ...one,
      name: one.name.slice(0, 64),
      bytes: all.bytes + one.bytes,
      modifiedAt: later(all.modifiedAt, one.modifiedAt),
      files: all.files + 1,
    })),
  );
}

function later(one: Date, other: Date = one): Date {
  return one > other ? one : other;
}
