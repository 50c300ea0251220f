import { hash } from "node:crypto";
import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseJson } from "../../text/json.ts";
import { buildLayer } from "./build-layer.ts";
import { differences, formatFileList, listFiles } from "./file-list.ts";
import {
  compareByRank,
  findSnapshot,
  type LayerManifest,
  layerSchema,
  readManifest,
  snapshotId,
  type SnapshotInfo,
  type SnapshotManifest,
  toSnapshotInfo,
} from "./find-snapshot.ts";
import { inputsHash, installWorkerCode, packagesPath, readWorkerCode } from "./worker-code.ts";
import { runStep, type OnProgress } from "./progress.ts";
import { requireSystemPackages } from "./debian-packages.ts";
import { runInRootfs } from "./run-program.ts";
import { runProgram } from "./run-program.ts";
import { toCacheFailure } from "./to-cache-failure.ts";
import { openLock, openBuildDirectory } from "./build-directory.ts";

export interface BuildOptions {
  readonly cacheDirectory: string;
  /** Bring Debian and the wheels again, even when a layer of the same recipe and lock is there. */
  readonly fresh?: boolean;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

interface Layer {
  readonly directory: string;
  readonly manifest: LayerManifest;
}

/**
 * Makes the snapshot for the present worker code and lock, and gives the one that is there when nothing changed. Takes seconds when only the worker code changed.
 * On failure or abort nothing is left; a snapshot or layer that was damaged meanwhile is made again.
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
  const present = fresh ? null : await findSnapshot({ cacheDirectory });
  if (present && present.source === "wheels" && (await isSound(path.dirname(present.rootfs), "manifest.json", signal))) return present;
  const layer = await getLayer({ cacheDirectory, fresh, onProgress, signal });
  return await assembleSnapshot({ cacheDirectory, layer, onProgress, signal });
}

/** The root file system of the layer alone, for tools that bring their own code (the tests of python/). */
export async function buildLayerOnly(options: BuildOptions): Promise<string> {
  await using _lock = await lockBuilds(options);
  return path.join((await getLayer(options)).directory, "rootfs");
}

async function lockBuilds({ cacheDirectory, onProgress, signal }: BuildOptions): Promise<AsyncDisposable> {
  let said = false;
  const onWait = (pid: number): void => {
    if (!said) onProgress?.({ step: `Waiting for another build (process ${pid})`, state: "started", elapsedMs: 0 });
    said = true;
  };
  return await openLock({ file: path.join(cacheDirectory, "locks", "snapshot"), onWait, signal });
}

async function getLayer({ cacheDirectory, fresh = false, onProgress, signal }: BuildOptions): Promise<Layer> {
  const key = await inputsHash();
  const kept = fresh ? null : await findSoundLayer(cacheDirectory, key, signal);
  if (kept?.manifest.source === "wheels") return kept;
  await requireSystemPackages(signal);
  await using workplace = await openBuildDirectory(cacheDirectory);
  const directory = path.join(workplace.directory, "layer");
  await mkdir(directory);
  const manifest = await buildLayer({ directory, inputsHash: key, onlyWheels: kept !== null, onProgress, signal });
  if (!manifest) return kept ?? (await getLayer({ cacheDirectory, fresh: true, onProgress, signal }));
  const final = path.join(cacheDirectory, "layers", `${key}-${manifest.contentHash.slice(0, 16)}`);
  await moveIntoPlace(directory, final);
  return { directory: final, manifest };
}

/** The best kept layer of these inputs. A damaged one is removed, because snapshots share its files. */
async function findSoundLayer(cacheDirectory: string, key: string, signal: AbortSignal | undefined): Promise<Layer | null> {
  const parent = path.join(cacheDirectory, "layers");
  const layers: Layer[] = [];
  for (const name of await readdir(parent).catch(() => [])) {
    const manifest = await readManifest(layerSchema, path.join(parent, name, "layer.json")).catch(() => null);
    if (manifest?.inputsHash === key) layers.push({ directory: path.join(parent, name), manifest });
  }
  for (const layer of layers.sort((a, b) => compareByRank(a.manifest, b.manifest))) {
    if (await isSound(layer.directory, "layer.json", signal)) return layer;
    await rm(layer.directory, { recursive: true, force: true });
  }
  return null;
}

/** A hard-linked copy of the layer with our own code added. */
async function assembleSnapshot({ cacheDirectory, layer, onProgress, signal }: BuildOptions & { layer: Layer }): Promise<SnapshotInfo> {
  await using workplace = await openBuildDirectory(cacheDirectory);
  return await runStep("Worker code", onProgress, async () => {
    const directory = path.join(workplace.directory, "snapshot");
    const rootfs = path.join(directory, "rootfs");
    await mkdir(directory);
    await runProgram({ program: "cp", args: ["-al", path.join(layer.directory, "rootfs"), rootfs], signal });
    const code = await readWorkerCode();
    await installWorkerCode(code, rootfs);
    const packages = ["sluice", "sluice_worker"].map((name) => `/${packagesPath}/${name}`);
    await runInRootfs({
      rootfs,
      writable: true,
      args: ["/usr/bin/python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", ...packages],
      signal,
    });
    const list = formatFileList(await listFiles(rootfs, signal));
    const content = { ...layer.manifest, workerHash: code.hash, contentHash: hash("sha256", list) };
    const manifest: SnapshotManifest = { id: snapshotId(content), ...content };
    await writeFile(path.join(directory, "files.txt"), list);
    await writeFile(path.join(directory, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    const final = path.join(cacheDirectory, "snapshots", manifest.id);
    if (!(await isSound(final, "manifest.json", signal))) await rm(final, { recursive: true, force: true });
    await moveIntoPlace(directory, final);
    return { value: toSnapshotInfo(manifest, path.join(final, "rootfs")), detail: `snapshot ${manifest.id}`, bytes: manifest.bytes };
  });
}

/** Whether every file is as it was recorded. */
async function isSound(directory: string, manifestName: string, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    const recorded = await readFile(path.join(directory, "files.txt"), "utf8");
    const manifest = parseJson(await readFile(path.join(directory, manifestName), "utf8"));
    const { contentHash } = layerSchema.pick({ contentHash: true }).parse(manifest);
    return (
      hash("sha256", recorded) === contentHash &&
      differences(recorded, await listFiles(path.join(directory, "rootfs"), signal), 1).length === 0
    );
  } catch {
    signal?.throwIfAborted();
    return false;
  }
}

/** One rename. When another build was first, its result is as good and stays. */
async function moveIntoPlace(directory: string, final: string): Promise<void> {
  await mkdir(path.dirname(final), { recursive: true });
  // What the rename makes visible must be on the disk, or a power cut leaves a whole-looking snapshot of empty files.
  await runProgram({ program: "sync", args: ["-f", directory] });
  try {
    await rename(directory, final);
  } catch (error) {
    if (!["EEXIST", "ENOTEMPTY"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}
