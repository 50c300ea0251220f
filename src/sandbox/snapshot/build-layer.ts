import { hash } from "node:crypto";
import fs, { chmod, lstat, lutimes, mkdir, opendir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { SluiceError } from "../../errors/sluice-error.ts";
import { parseJson } from "../../text/json.ts";
import { downloadDebianPackages, unpackDebianPackages } from "./debian-packages.ts";
import { diskBytes, formatFileList, listFiles } from "./file-list.ts";
import { installWheels } from "./wheels.ts";
import { layerSchema, type LayerManifest } from "./find-snapshot.ts";
import { runStep, type OnProgress } from "./progress.ts";
import { finishScript, lockFile, packagesPath, recipe } from "./recipe.ts";
import { runInRootfs } from "./run-program.ts";

interface LayerOptions {
  /** An empty directory. The build puts `rootfs/`, `layer.json` and `files.txt` there. */
  readonly directory: string;
  readonly inputsHash: string;
  /** Return null instead of building from Debian's Python packages, because the caller already has such a layer. */
  readonly onlyWheels: boolean;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

/** Builds everything of a snapshot except our own code. */
export async function buildLayer({ directory, inputsHash, onlyWheels, onProgress, signal }: LayerOptions): Promise<LayerManifest | null> {
  const rootfs = path.join(directory, "rootfs");
  const packages = path.join(directory, "packages");
  const source = await installWheelsIfReachable({ packages, onProgress, signal });
  if (source === "debian" && onlyWheels) return null;
  const debian = await runStep("Debian packages", onProgress, async (report) => {
    const names = [...recipe.debianPackages, ...(source === "debian" ? recipe.debianLibraries : [])];
    const archives = await downloadDebianPackages({ names, directory, onLine: report, signal });
    const value = await unpackDebianPackages({ archives, rootfs, signal });
    return { value, bytes: value.bytes, detail: `${Object.keys(value.versions).length} packages` };
  });
  if (source === "wheels") {
    const target = path.join(rootfs, packagesPath);
    await rm(target, { recursive: true, force: true });
    await mkdir(path.dirname(target), { recursive: true });
    await rename(packages, target);
  }
  await rm(path.join(directory, "debs"), { recursive: true });
  await rm(path.join(directory, "tmp"), { recursive: true });
  await runStep("Trim and configure", onProgress, async () => {
    await removeMatches(rootfs, recipe.removedPaths);
    const installed = path.join(rootfs, source === "wheels" ? packagesPath : "usr/lib/python3/dist-packages");
    await removeMatches(installed, recipe.removedFromPackages);
    await configure(rootfs, source);
    // Use the root's own ldconfig, not the host's, so that the result is the same on every host.
    await runInRootfs({ rootfs, writable: true, args: ["/usr/sbin/ldconfig", "-i"], signal });
    return { value: undefined };
  });
  const contents = await runStep("Compile Python and build the font cache", onProgress, async () => ({
    value: await finishInside(rootfs, source, signal),
  }));
  return await runStep("Record every file", onProgress, async () => {
    await normalizeFiles(rootfs);
    const list = formatFileList(await listFiles(rootfs, signal));
    const manifest: LayerManifest = {
      schemaVersion: 1,
      architecture: process.arch,
      source,
      ...contents,
      debianPackages: debian.versions,
      inputsHash,
      contentHash: hash("sha256", list),
      bytes: await diskBytes(rootfs),
      builtAt: new Date().toISOString(),
    };
    await writeFile(path.join(directory, "files.txt"), list);
    await writeFile(path.join(directory, "layer.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    return { value: manifest, bytes: manifest.bytes };
  });
}

/** Installs the wheels and returns "wheels", or returns "debian" if the package index cannot be reached. */
async function installWheelsIfReachable({
  packages,
  onProgress,
  signal,
}: Pick<LayerOptions, "onProgress" | "signal"> & { packages: string }): Promise<LayerManifest["source"]> {
  return await runStep("Python wheels", onProgress, async (report) => {
    const result = await installWheels({ lockFile, target: packages, onLine: report, signal });
    if (result.installed) return { value: "wheels", bytes: await diskBytes(packages) };
    await rm(packages, { recursive: true, force: true });
    return { value: "debian", detail: `${result.unreachable}: using Debian's own packages instead, without pyarrow` };
  });
}

async function removeMatches(directory: string, patterns: readonly string[]): Promise<void> {
  for (const pattern of patterns) {
    const matches: string[] = [];
    for await (const match of fs.glob(pattern, { cwd: directory })) matches.push(match);
    for (const match of matches) await rm(path.join(directory, match), { recursive: true, force: true });
  }
}

/** Creates the few files that maintainer scripts would have created, and the mount points that drivers need in a read-only root. */
async function configure(rootfs: string, source: LayerManifest["source"]): Promise<void> {
  const directories = [
    ...["dev", "proc", "sys", "tmp", "run", "sandbox"],
    ...["etc/ld.so.conf.d", "usr/local/bin", packagesPath, "usr/share/sluice/matplotlib"],
  ];
  for (const name of directories) await mkdir(path.join(rootfs, name), { recursive: true });
  const files: Record<string, string> = {
    "etc/passwd": "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/sandbox:/bin/sh\n",
    "etc/group": "root:x:0:\nsandbox:x:1000:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/hostname": "sandbox\n",
    "etc/timezone": "Etc/UTC\n",
  };
  // Debian's alternatives are not set up, so the loader itself must prefer OpenBLAS.
  if (source === "debian")
    for (const triplet of ["x86_64", "aarch64"])
      files[`etc/ld.so.conf.d/0-openblas-${triplet}.conf`] = `/usr/lib/${triplet}-linux-gnu/openblas-pthread\n`;
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(rootfs, name), content);
  await link("/usr/share/zoneinfo/Etc/UTC", path.join(rootfs, "etc/localtime"));
  await link("python3.13", path.join(rootfs, "usr/bin/python3"));
  await link("python3.13", path.join(rootfs, "usr/bin/python"));
  await configureMatplotlib(rootfs, source);
}

async function link(target: string, file: string): Promise<void> {
  await rm(file, { force: true });
  await symlink(target, file);
}

/**
 * Sets the font families in Matplotlib's own defaults and styles instead of a user's file, so that text with mixed writing systems also works after
 * `rcdefaults()` and `style.use()`.
 */
async function configureMatplotlib(rootfs: string, source: LayerManifest["source"]): Promise<void> {
  const families = recipe.fontFamilies[source].join(", ");
  const data = source === "wheels" ? `${packagesPath}/matplotlib/mpl-data` : "usr/share/matplotlib/mpl-data";
  const files = [`${data}/matplotlibrc`];
  for await (const style of fs.glob(`${data}/stylelib/*.mplstyle`, { cwd: rootfs })) files.push(style);
  for (const name of files) {
    const file = path.join(rootfs, name);
    const text = await readFile(file, "utf8");
    // Keep a leading #: Matplotlib removes one from each line when it reads its defaults.
    await writeFile(
      file,
      text.replace(/^(#?font\.family\s*:).*$/m, `$1 ${families}`).replace(/^(#?font\.sans-serif\s*:).*$/m, `$1 ${families}, sans-serif`),
    );
  }
}

/** Compiles all modules and builds the font cache. Bytecode is not checked against its source later: the root is read-only, so it cannot become stale. */
async function finishInside(
  rootfs: string,
  source: LayerManifest["source"],
  signal?: AbortSignal,
): Promise<Pick<LayerManifest, "python" | "packages">> {
  const options = {
    directories: ["/usr/lib/python3.13", "/usr/lib/python3/dist-packages", `/${packagesPath}`],
    families: recipe.fontFamilies[source],
  };
  const output = await runInRootfs({
    rootfs,
    writable: true,
    args: ["/usr/bin/python3", "-c", await readFile(finishScript, "utf8"), JSON.stringify(options)],
    environment: { MPLCONFIGDIR: "/usr/share/sluice/matplotlib" },
    signal,
  });
  const contents = layerSchema.pick({ python: true, packages: true }).parse(parseJson(output.trim().split("\n").at(-1) ?? ""));
  if (!contents.python.startsWith(recipe.python))
    throw new SluiceError({
      code: "SNAPSHOT_WRONG_PYTHON",
      message: `The snapshot has Python ${contents.python} instead of ${recipe.python}.`,
    });
  return contents;
}

/** Sets modes and times to fixed values, so that the result does not depend on the builder: all files are readable, none is set-uid. */
async function normalizeFiles(rootfs: string): Promise<void> {
  const fixedTime = new Date(0);
  for await (const entry of await opendir(rootfs, { recursive: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (!entry.isSymbolicLink()) await chmod(file, entry.isDirectory() || (await lstat(file)).mode & 0o111 ? 0o755 : 0o644);
    await lutimes(file, fixedTime, fixedTime);
  }
  await chmod(rootfs, 0o755);
}
