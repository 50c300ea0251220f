import path from "node:path";
import type { BlobFacts, BlobStore } from "../../blobs/contract.ts";
import { createFileBlobs } from "../../blobs/create-file-blobs.ts";
import { bodiesOf } from "../../evidence/dataset/dataset-store.ts";

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
export function pruneLooseFiles({ directory, tooOld, maxBytes, untouchedSince, isDryRun }: LooseFilesOptions): PrunedFiles {
  const artifacts = createFileBlobs({ directory, subject: "Artifacts" });
  const datasets = createFileBlobs({ directory: path.join(directory, "datasets"), subject: "The dataset" });
  const files = [...list(artifacts), ...asOldAsManifests(list(datasets))];
  files.sort((a, b) => a.modifiedAt.getTime() - b.modifiedAt.getTime());
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

/** An output is as young as the youngest manifest that refers to it, and stands behind it: it goes after the last of them. */
function asOldAsManifests(files: readonly Found[]): Found[] {
  const [manifests, bodies] = [files.filter(({ name }) => name.includes(".")), files.filter(({ name }) => !name.includes("."))];
  const usedAt = new Map<string, Date>();
  for (const { store, name, modifiedAt } of bodies.length === 0 ? [] : manifests.filter(isManifest))
    for (const sha256 of bodiesOf(store.read(name))) if ((usedAt.get(sha256) ?? modifiedAt) <= modifiedAt) usedAt.set(sha256, modifiedAt);
  const aged = bodies.map((body) => ({ ...body, modifiedAt: later(body.modifiedAt, usedAt.get(body.name)) }));
  return [...manifests, ...aged];
}

/** Documents that `sluice ask` composed lie beside their manifests. */
function isManifest({ name, isDraft }: Found): boolean {
  return !isDraft && !name.endsWith(".document.json");
}

function later(one: Date, other: Date = one): Date {
  return one > other ? one : other;
}
