import path from "node:path";
import type { BlobFacts, BlobStore } from "../../blobs/contract.ts";
import { createFileBlobs } from "../../blobs/create-file-blobs.ts";
import { readUses } from "../../evidence/dataset/dataset-store.ts";

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
}

/** Files that no history knows of, because those who made them keep none: their age is all that there is to go by. */
export async function pruneLooseFiles({ directory, tooOld, maxBytes, untouchedSince, isDryRun }: LooseFilesOptions): Promise<PrunedFiles> {
  const artifacts = createFileBlobs({ directory, subject: "Artifacts" });
  const datasets = createFileBlobs({ directory: path.join(directory, "datasets"), subject: "The dataset" });
  const usedAt = await readUses(datasets); // before the files are listed: what is kept again meanwhile is young by then
  const files = [...list(artifacts), ...list(datasets)].map((file) => ({
    ...file,
    modifiedAt: later(file.modifiedAt, usedAt.get(file.name)),
  }));
  // An output goes after the last manifest that refers to it.
  files.sort((a, b) => a.modifiedAt.getTime() - b.modifiedAt.getTime() || Number(usedAt.has(a.name)) - Number(usedAt.has(b.name)));
  const bytesBefore = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const counts = { expired: 0, overQuota: 0, bytesBefore, bytesAfter: bytesBefore };
  for (const { store, name, bytes, modifiedAt } of files) {
    const isExpired = modifiedAt < tooOld;
    if (modifiedAt >= untouchedSince || (!isExpired && counts.bytesAfter <= maxBytes)) break; // the rest is younger
    if (!isDryRun) store.delete(name);
    counts.bytesAfter -= bytes;
    counts[isExpired ? "expired" : "overQuota"] += 1;
  }
  return counts;
}

function list(store: BlobStore): Found[] {
  return store.list().map((blob) => ({ ...blob, store }));
}

function later(one: Date, other: Date = one): Date {
  return one > other ? one : other;
}
