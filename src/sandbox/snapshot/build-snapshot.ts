import { hash } from "node:crypto";
import { mkdir, readFile, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseJson } from "../../text/json.ts";
import { scratchDirectory } from "../worker-environment.ts";
import { buildLayer } from "./build-layer.ts";
import { listChanges, formatFileList, listFiles } from "./file-list.ts";
import {
  compareByRank,
  findSnapshot,
  hashLayerInputs,
  type LayerManifest,
  layerSchema,
  readManifest,
  readWorkerCode,
  toSnapshotId,
  type SnapshotInfo,
  type SnapshotManifest,
  toSnapshotInfo,
} from "./find-snapshot.ts";
import { runStep, type OnProgress } from "./progress.ts";
import { packagesPath } from "./recipe.ts";
import { requireSystemPackages } from "./debian-packages.ts";
import { runInRootfs, runProgram } from "./run-program.ts";
import { toCacheFailure } from "./to-cache-failure.ts";
import { openLock, openBuildDirectory } from "./build-directory.ts";

export interface BuildOptions {
  readonly cacheDirectory: string;
  /** Download Debian packages and wheels again, even if a layer of the same recipe and lock file exists. */
  readonly fresh?: boolean;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

interface Layer {
  readonly directory: string;
  readonly manifest: LayerManifest;
}

/**
 * Builds the snapshot for the current worker code and lock file, or returns the existing one if nothing changed. Takes seconds if only the worker code changed.
 * Leaves nothing behind on failure or abort. A damaged snapshot or layer is built again.
 */
export async function buildSnapshot(options: BuildOptions): Promise<SnapshotInfo> {
  try {
    return await buildLocked(options);
  } catch (error) {
    options.signal?.throwIfAborted();
    throw await toCacheFailure(error, options.cacheDirectory);
  }
}

async function buildLocked({ cacheDirectory, fresh = false, onProgress, signal }: BuildOptions): Promise<SnapshotInfo> {
  await using _lock = await lockBuilds({ cacheDirectory, onProgress, signal });
  const existing = fresh ? null : await findSnapshot({ cacheDirectory });
  if (existing && existing.source === "wheels" && (await isIntact(path.dirname(existing.rootfs), "manifest.json", signal))) return existing;
  const layer = await getLayer({ cacheDirectory, fresh, onProgress, signal });
  return await assembleSnapshot({ cacheDirectory, layer, onProgress, signal });
}

/** Builds only the layer and returns its root file system, for tools that bring their own code (the tests of python/). */
export async function buildLayerOnly(options: BuildOptions): Promise<string> {
  await using _lock = await lockBuilds(options);
  return path.join((await getLayer(options)).directory, "rootfs");
}

async function lockBuilds({ cacheDirectory, onProgress, signal }: BuildOptions): Promise<AsyncDisposable> {
  let wasReported = false;
  const onWait = (pid: number): void => {
    if (!wasReported) onProgress?.({ step: `Waiting for another build (process ${pid})`, state: "started", elapsedMs: 0 });
    wasReported = true;
  };
  return await openLock({ file: path.join(cacheDirectory, "locks", "snapshot"), onWait, signal });
}

async function getLayer({ cacheDirectory, fresh = false, onProgress, signal }: BuildOptions): Promise<Layer> {
  const key = await hashLayerInputs();
  const existing = fresh ? null : await findIntactLayer(cacheDirectory, key, signal);
  if (existing?.manifest.source === "wheels") return existing;
  await requireSystemPackages(signal);
  await using build = await openBuildDirectory(cacheDirectory);
  const directory = path.join(build.directory, "layer");
  await mkdir(directory);
  const manifest = await buildLayer({ directory, inputsHash: key, onlyWheels: existing !== null, onProgress, signal });
  if (!manifest) return existing ?? (await getLayer({ cacheDirectory, fresh: true, onProgress, signal }));
  const final = path.join(cacheDirectory, "layers", `${key}-${manifest.contentHash.slice(0, 16)}`);
  await moveIntoPlace(directory, final);
  return { directory: final, manifest };
}

/** The best existing layer of these inputs. Damaged layers are removed, because snapshots share their files. */
async function findIntactLayer(cacheDirectory: string, key: string, signal: AbortSignal | undefined): Promise<Layer | null> {
  const parent = path.join(cacheDirectory, "layers");
  const layers: Layer[] = [];
  for (const name of await readdir(parent).catch(() => [])) {
    const manifest = await readManifest(layerSchema, path.join(parent, name, "layer.json")).catch(() => null);
    if (manifest?.inputsHash === key) layers.push({ directory: path.join(parent, name), manifest });
  }
  for (const layer of layers.sort((a, b) => compareByRank(a.manifest, b.manifest))) {
    if (await isIntact(layer.directory, "layer.json", signal)) return layer;
    await rm(layer.directory, { recursive: true, force: true });
  }
  return null;
}

/** Where programs that were written for Vercel's sandbox expect the scratch directory. */
const otherScratchDirectory = "vercel/sandbox";

/** Creates a hard-linked copy of the layer and adds the worker code. */
async function assembleSnapshot({ cacheDirectory, layer, onProgress, signal }: BuildOptions & { layer: Layer }): Promise<SnapshotInfo> {
  await using build = await openBuildDirectory(cacheDirectory);
  return await runStep("Worker code", onProgress, async () => {
    const directory = path.join(build.directory, "snapshot");
    const rootfs = path.join(directory, "rootfs");
    await mkdir(directory);
    await runProgram({ program: "cp", args: ["-al", path.join(layer.directory, "rootfs"), rootfs], signal });
    const code = await readWorkerCode();
    for (const [name, content] of code.files) {
      const target = path.join(rootfs, packagesPath, name);
      await mkdir(path.dirname(target), { recursive: true, mode: 0o755 });
      await writeFile(target, content, { mode: 0o644 });
    }
    await mkdir(path.dirname(path.join(rootfs, otherScratchDirectory)));
    await symlink(scratchDirectory, path.join(rootfs, otherScratchDirectory));
    const packages = ["sluice", "sluice_worker"].map((name) => `/${packagesPath}/${name}`);
    await runInRootfs({
      rootfs,
      writable: true,
      args: ["/usr/bin/python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", ...packages],
      signal,
    });
    const list = formatFileList(await listFiles(rootfs, signal));
    const content = { ...layer.manifest, workerHash: code.hash, contentHash: hash("sha256", list) };
    const manifest: SnapshotManifest = { id: toSnapshotId(content), ...content };
    await writeFile(path.join(directory, "files.txt"), list);
    await writeFile(path.join(directory, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    const final = path.join(cacheDirectory, "snapshots", manifest.id);
    if (!(await isIntact(final, "manifest.json", signal))) await rm(final, { recursive: true, force: true });
    await moveIntoPlace(directory, final);
    return { value: toSnapshotInfo(manifest, path.join(final, "rootfs")), detail: `snapshot ${manifest.id}`, bytes: manifest.bytes };
  });
}

/** Whether every file matches the list that was recorded at build time. */
async function isIntact(directory: string, manifestName: string, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    const recorded = await readFile(path.join(directory, "files.txt"), "utf8");
    const manifest = parseJson(await readFile(path.join(directory, manifestName), "utf8"));
    const { contentHash } = layerSchema.pick({ contentHash: true }).parse(manifest);
    return (
      hash("sha256", recorded) === contentHash &&
      listChanges(recorded, await listFiles(path.join(directory, "rootfs"), signal), 1).length === 0
    );
  } catch {
    signal?.throwIfAborted();
    return false;
  }
}

/** Renames the directory. If another build was faster, keeps its result, which is equivalent. */
async function moveIntoPlace(directory: string, final: string): Promise<void> {
  await mkdir(path.dirname(final), { recursive: true });
  // Without sync, a power cut could leave a snapshot that looks complete but has empty files.
  await runProgram({ program: "sync", args: ["-f", directory] });
  try {
    await rename(directory, final);
  } catch (error) {
    if (!["EEXIST", "ENOTEMPTY"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}
