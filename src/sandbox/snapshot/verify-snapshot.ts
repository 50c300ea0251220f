import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { listChanges, listFiles, type ListedFile } from "./file-list.ts";
import { manifestSchema, readManifest, requireSnapshot, toSnapshotId, type SnapshotInfo, type SnapshotManifest } from "./find-snapshot.ts";
import { pythonDirectory, recipe } from "./recipe.ts";
import { runInRootfs } from "./run-program.ts";

const checksSchema = z.array(z.object({ name: z.string(), ok: z.boolean(), detail: z.string() }));

type SnapshotCheck = Readonly<z.infer<typeof checksSchema>[number]>;

export interface Verification {
  readonly snapshot: SnapshotInfo;
  readonly ok: boolean;
  readonly checks: readonly SnapshotCheck[];
}

/** Matplotlib's font list in the snapshot. It must be copied to MPLCONFIGDIR before Python starts. */
const fontCachePath = "/usr/share/sluice/matplotlib";

const libraries = [
  ...["pandas", "numpy", "scipy.stats", "scipy.optimize", "scipy.signal", "scipy.interpolate"],
  ...["scipy.cluster.hierarchy", "scipy.spatial", "scipy.sparse.linalg"],
  ...["matplotlib.pyplot", "mpl_toolkits.mplot3d", "matplotlib.backends.backend_svg", "matplotlib.backends.backend_pdf"],
  ...["statsmodels.api", "statsmodels.formula.api", "statsmodels.tsa.api", "statsmodels.datasets"],
  ...["openpyxl", "sqlite3", "ssl", "lzma", "bz2", "zlib", "decimal", "ctypes", "curses"],
];
const arrowLibraries = [
  ...["pyarrow", "pyarrow.parquet", "pyarrow.dataset", "pyarrow.compute"],
  ...["pyarrow.csv", "pyarrow.json", "pyarrow.feather", "pyarrow.orc"],
];

/**
 * Compares every file with the recorded list, then lets the snapshot's own Python check which modules and programs exist. Takes a few seconds and
 * changes nothing.
 */
export async function verifySnapshot({ cacheDirectory, signal }: { cacheDirectory: string; signal?: AbortSignal }): Promise<Verification> {
  const snapshot = await requireSnapshot({ cacheDirectory });
  const directory = path.dirname(snapshot.rootfs);
  const manifest = await readManifest(manifestSchema, path.join(directory, "manifest.json"));
  const files = await listFiles(snapshot.rootfs, signal);
  const checks = [
    checkManifest(snapshot, manifest),
    await checkFiles(directory, files, manifest),
    checkModes(files),
    checkSize(snapshot),
    ...(await checkInside(snapshot, signal)),
  ];
  return { snapshot, ok: checks.every(({ ok }) => ok), checks };
}

function checkManifest(snapshot: SnapshotInfo, manifest: SnapshotManifest | null): SnapshotCheck {
  const ok = manifest !== null && toSnapshotId(manifest) === snapshot.id;
  return { name: "manifest", ok, detail: ok ? `the id ${snapshot.id} matches the content` : "the id does not match the manifest" };
}

async function checkFiles(directory: string, files: readonly ListedFile[], manifest: SnapshotManifest | null): Promise<SnapshotCheck> {
  const recorded = await readFile(path.join(directory, "files.txt"), "utf8").catch(() => "");
  if (hash("sha256", recorded) !== manifest?.contentHash)
    return { name: "files", ok: false, detail: "the recorded list of files was changed" };
  const changed = listChanges(recorded, files);
  const ok = changed.length === 0;
  return { name: "files", ok, detail: ok ? `${files.length} entries are unchanged since the build` : changed.join("; ") };
}

function checkModes(files: readonly ListedFile[]): SnapshotCheck {
  const wrong = files.filter(({ kind, mode }) => kind !== "link" && (mode & 0o7022 || (mode & 0o004) === 0));
  const detail =
    wrong.length === 0
      ? "all files are readable, none is writable or set-uid"
      : `${wrong.length} with wrong modes, for example ${wrong[0]?.path}`;
  return { name: "modes", ok: wrong.length === 0, detail };
}

function checkSize({ bytes }: SnapshotInfo): SnapshotCheck {
  return { name: "size", ok: bytes < recipe.maxBytes, detail: `${Math.round(bytes / 1e6)} MB of at most ${recipe.maxBytes / 1e6} MB` };
}

async function checkInside(snapshot: SnapshotInfo, signal: AbortSignal | undefined): Promise<readonly SnapshotCheck[]> {
  const options = {
    modules: recipe.forbiddenModules,
    programs: recipe.forbiddenPrograms,
    libraries: snapshot.source === "wheels" ? [...libraries, ...arrowLibraries] : libraries,
    fontCache: fontCachePath,
  };
  const script = await readFile(path.join(pythonDirectory, "snapshot", "verify_inside.py"), "utf8");
  try {
    const output = await runInRootfs({
      rootfs: snapshot.rootfs,
      args: ["/usr/bin/python3", "-c", script, JSON.stringify(options)],
      environment: { MPLCONFIGDIR: "/sandbox/.matplotlib" },
      signal,
    });
    return checksSchema.parse(JSON.parse(output.trim().split("\n").at(-1) ?? ""));
  } catch (error) {
    signal?.throwIfAborted();
    return [{ name: "python", ok: false, detail: error instanceof Error ? error.message : String(error) }];
  }
}
