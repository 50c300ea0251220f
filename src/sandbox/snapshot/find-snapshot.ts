import { hash } from "node:crypto";
import { existsSync } from "node:fs";
import fs, { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { NoSandboxError, SluiceError } from "../../errors/sluice-error.ts";
import { parseJson } from "../../text/json.ts";
import { finishScript, lockFile, pythonDirectory, recipe } from "./recipe.ts";

/** The part of a snapshot that changes rarely: Debian, Python, libraries, fonts. */
export const layerSchema = z.object({
  schemaVersion: z.literal(1),
  architecture: z.string(),
  python: z.string(),
  source: z.enum(["wheels", "debian"]),
  /** Python packages, name to version. */
  packages: z.record(z.string(), z.string()),
  debianPackages: z.record(z.string(), z.string()),
  /** See hashLayerInputs. */
  inputsHash: z.string(),
  /** Hash of the file list. */
  contentHash: z.string(),
  bytes: z.number(),
  builtAt: z.iso.datetime(),
});
export const manifestSchema = layerSchema.extend({ id: z.string(), workerHash: z.string() });

export type LayerManifest = z.infer<typeof layerSchema>;
export type SnapshotManifest = z.infer<typeof manifestSchema>;

/** A snapshot on this machine. It can be passed to a driver as its `Snapshot`. */
export interface SnapshotInfo extends Readonly<Pick<SnapshotManifest, "id" | "python" | "packages" | "source" | "bytes">> {
  /** Absolute path of the root file system. */
  readonly rootfs: string;
}

/** The snapshot for the current worker code and lock file, or null. Reads only manifests, so it is cheap enough for every start. */
export async function findSnapshot({ cacheDirectory }: { cacheDirectory: string }): Promise<SnapshotInfo | null> {
  const parent = path.join(cacheDirectory, "snapshots");
  const [key, code, names] = await Promise.all([hashLayerInputs(), readWorkerCode(), readdir(parent).catch(() => [])]);
  const found: SnapshotManifest[] = [];
  for (const name of names) {
    const manifest = await readManifest(manifestSchema, path.join(parent, name, "manifest.json")).catch(() => null);
    if (manifest?.id !== name || manifest.inputsHash !== key || manifest.workerHash !== code.hash) continue;
    if (existsSync(path.join(parent, name, "rootfs", "usr", "bin", "python3"))) found.push(manifest);
  }
  const best = found.sort(compareByRank)[0];
  return best ? toSnapshotInfo(best, path.join(parent, best.id, "rootfs")) : null;
}

/** The same, but throws SNAPSHOT_MISSING. */
export async function requireSnapshot({ cacheDirectory }: { cacheDirectory: string }): Promise<SnapshotInfo> {
  const snapshot = await findSnapshot({ cacheDirectory });
  if (snapshot !== null) return snapshot;
  throw new NoSandboxError({
    code: "SNAPSHOT_MISSING",
    message: "There is no snapshot for this version of Sluice in the cache.",
    hint: "Run `sluice prepare` (`npx sluice prepare` where it is a dependency, `npm run setup` in a clone).",
  });
}

/** Changes whenever an input of the layer changes: recipe, architecture, lock file or finish script. */
export async function hashLayerInputs(): Promise<string> {
  const files = await Promise.all([lockFile, finishScript].map((file) => readFile(file)));
  return hash("sha256", JSON.stringify([recipe, process.arch, files.map((file) => hash("sha256", file))])).slice(0, 32);
}

/** Reads our Python packages that run in the sandbox. The hash covers exactly the returned files, by their paths below `python/`. */
export async function readWorkerCode(): Promise<{ readonly hash: string; readonly files: ReadonlyMap<string, Uint8Array> }> {
  const names: string[] = [];
  for await (const name of fs.glob("{sluice,sluice_worker}/**/*.{py,json,txt,typed}", { cwd: pythonDirectory })) names.push(name);
  const files = new Map<string, Uint8Array>();
  for (const name of names.sort()) files.set(name, await readFile(path.join(pythonDirectory, name)));
  const content = JSON.stringify([...files].map(([name, bytes]) => [name, hash("sha256", bytes)]));
  return { hash: hash("sha256", content).slice(0, 32), files };
}

/** Sorts snapshots built from wheels before those built from Debian's packages, and newer ones first. */
export function compareByRank(a: LayerManifest, b: LayerManifest): number {
  return `${a.source} ${a.builtAt}` < `${b.source} ${b.builtAt}` ? 1 : -1;
}

export function toSnapshotInfo({ id, python, packages, source, bytes }: SnapshotManifest, rootfs: string): SnapshotInfo {
  return { id, rootfs, python, packages, source, bytes };
}

/** The id of a snapshot: a hash of the manifest's fields about content, without build time and size. */
export function toSnapshotId(manifest: Omit<SnapshotManifest, "id">): string {
  const { schemaVersion, architecture, python, source, packages, debianPackages, inputsHash, contentHash, workerHash } = manifest;
  const sorted = (packageVersions: Record<string, string>): [string, string][] =>
    Object.entries(packageVersions).sort(([a], [b]) => (a < b ? -1 : 1));
  const versions = [sorted(packages), sorted(debianPackages)];
  const content = [schemaVersion, architecture, python, source, ...versions, inputsHash, contentHash, workerHash];
  return hash("sha256", JSON.stringify(content)).slice(0, 32);
}

/** Null when the file does not exist. Throws when it does not match the schema, for example because a newer version wrote it. */
export async function readManifest<Manifest>(schema: z.ZodType<Manifest>, file: string): Promise<Manifest | null> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" || (error as NodeJS.ErrnoException).code === "ENOTDIR") return null;
    throw error;
  }
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new SluiceError({
    code: "SNAPSHOT_MANIFEST_UNKNOWN",
    message: `${file} is not a manifest of version 1: ${z.prettifyError(parsed.error)}`,
    hint: `Remove ${path.dirname(file)} and run \`sluice snapshot build\`.`,
  });
}
