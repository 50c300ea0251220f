import { access, readdir } from "node:fs/promises";
import path from "node:path";
import { inputsHash } from "./layer-inputs.ts";
import { manifestSchema, readManifest, type SnapshotManifest } from "./manifest.ts";
import type { SnapshotSource } from "./recipe.ts";
import { readWorkerCode } from "./worker-code.ts";

/** A built snapshot on this machine. Fits the drivers' `Snapshot`. */
export interface SnapshotInfo {
  readonly id: string;
  /** Absolute path of the root file system. */
  readonly rootfs: string;
  readonly python: string;
  readonly packages: Readonly<Record<string, string>>;
  readonly source: SnapshotSource;
  readonly bytes: number;
}

/** The snapshot for the present worker code and lock, or null. Reads only manifests: cheap enough for every start. */
export async function findSnapshot({ cacheDirectory }: { cacheDirectory: string }): Promise<SnapshotInfo | null> {
  const parent = path.join(cacheDirectory, "snapshots");
  const [key, code, names] = await Promise.all([inputsHash(), readWorkerCode(), readdir(parent).catch(() => [])]);
  const found: SnapshotManifest[] = [];
  for (const name of names) {
    const manifest = await readManifest(manifestSchema, path.join(parent, name, "manifest.json")).catch(() => null);
    if (manifest?.id !== name || manifest.inputsHash !== key || manifest.workerHash !== code.hash) continue;
    if (await exists(path.join(parent, name, "rootfs", "usr", "bin", "python3"))) found.push(manifest);
  }
  const rank = (manifest: SnapshotManifest): string => `${manifest.source} ${manifest.builtAt}`;
  const best = found.sort((a, b) => (rank(a) < rank(b) ? 1 : -1))[0];
  return best ? toSnapshotInfo(best, path.join(parent, best.id, "rootfs")) : null;
}

export function toSnapshotInfo({ id, python, packages, source, bytes }: SnapshotManifest, rootfs: string): SnapshotInfo {
  return { id, rootfs, python, packages, source, bytes };
}

async function exists(file: string): Promise<boolean> {
  return await access(file).then(
    () => true,
    () => false,
  );
}
