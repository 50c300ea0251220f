import { hash } from "node:crypto";
import fs, { chmod, lstat, lutimes, mkdir, opendir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { SluiceError } from "../../errors/sluice-error.ts";
import { parseJson } from "../../text/json.ts";
import { downloadDebianPackages, unpackDebianPackages } from "./debian-packages.ts";
import { diskBytes, formatFileList, listFiles } from "./file-list.ts";
import { installWheels } from "./wheels.ts";
import { finishScript, lockFile, packagesPath } from "./worker-code.ts";
import { layerSchema, type LayerManifest } from "./find-snapshot.ts";
import { runStep, type OnProgress } from "./progress.ts";
import { recipe, type SnapshotSource } from "./recipe.ts";
import { runInRootfs } from "./run-program.ts";

interface LayerOptions {
  /** An empty directory; it holds `rootfs/`, `layer.json` and `files.txt` at the end. */
  readonly directory: string;
  readonly inputsHash: string;
  /** Give null instead of making a layer of Debian's own packages: the caller has one. */
  readonly onlyWheels: boolean;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

/** Everything of a snapshot but our own code. */
export async function buildLayer({ directory, inputsHash, onlyWheels, onProgress, signal }: LayerOptions): Promise<LayerManifest | null> {
  const rootfs = path.join(directory, "rootfs");
  const packages = path.join(directory, "packages");
  const source = await bringWheels({ packages, onProgress, signal });
  if (source === "debian" && onlyWheels) return null;
  const debian = await runStep("Debian packages", onProgress, async (say) => {
    const names = [...recipe.debianPackages, ...(source === "debian" ? recipe.debianLibraries : [])];
    const archives = await downloadDebianPackages({ names, directory, onLine: say, signal });
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
    // Its own program, not the host's: the same content gives the same bytes everywhere.
    await runInRootfs({ rootfs, writable: true, args: ["/usr/sbin/ldconfig", "-i"], signal });
    return { value: undefined };
  });
  const contents = await runStep("Compile Python and build the font cache", onProgress, async () => ({
    value: await finishInside(rootfs, source, signal),
  }));
  return await runStep("Record every file", onProgress, async () => {
    await normalise(rootfs);
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

async function bringWheels({
  packages,
  onProgress,
  signal,
}: Pick<LayerOptions, "onProgress" | "signal"> & { packages: string }): Promise<SnapshotSource> {
  return await runStep("Python wheels", onProgress, async (say) => {
    const outcome = await installWheels({ lockFile, target: packages, onLine: say, signal });
    if (outcome.installed) return { value: "wheels", bytes: await diskBytes(packages) };
    await rm(packages, { recursive: true, force: true });
    return { value: "debian", detail: `${outcome.unreachable}: using Debian's own packages instead, without pyarrow` };
  });
}

async function removeMatches(directory: string, patterns: readonly string[]): Promise<void> {
  for (const pattern of patterns) {
    const matches: string[] = [];
    for await (const match of fs.glob(pattern, { cwd: directory })) matches.push(match);
    for (const match of matches) await rm(path.join(directory, match), { recursive: true, force: true });
  }
}

/** The few files that maintainer scripts would have made, and the mount points that drivers need in a read-only root. */
async function configure(rootfs: string, source: SnapshotSource): Promise<void> {
  const directories = [
    "dev",
    "proc",
    "sys",
    "tmp",
    "run",
    "sandbox",
    "etc/ld.so.conf.d",
    "usr/local/bin",
    packagesPath,
    "usr/share/sluice/matplotlib",
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
  // Without Debian's alternatives, the loader itself has to prefer OpenBLAS.
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

/** Its own defaults and styles are changed, not a user's file, so that mixed scripts work after `rcdefaults()` and `style.use()` too. */
async function configureMatplotlib(rootfs: string, source: SnapshotSource): Promise<void> {
  const families = recipe.fontFamilies[source].join(", ");
  const data = source === "wheels" ? `${packagesPath}/matplotlib/mpl-data` : "usr/share/matplotlib/mpl-data";
  const files = [`${data}/matplotlibrc`];
  for await (const style of fs.glob(`${data}/stylelib/*.mplstyle`, { cwd: rootfs })) files.push(style);
  for (const name of files) {
    const file = path.join(rootfs, name);
    const text = await readFile(file, "utf8");
    // Matplotlib reads its defaults with one leading # removed from each line, so that one is kept.
    await writeFile(
      file,
      text.replace(/^(#?font\.family\s*:).*$/m, `$1 ${families}`).replace(/^(#?font\.sans-serif\s*:).*$/m, `$1 ${families}, sans-serif`),
    );
  }
}

/** Bytecode that is never checked against its source: the root is read-only, so an import neither writes nor compiles. */
async function finishInside(
  rootfs: string,
  source: SnapshotSource,
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
      message: `The snapshot has Python ${contents.python} and not ${recipe.python}.`,
    });
  return contents;
}

/** One owner's habits must not show: everything can be read by the sandbox's user, nothing is set-uid, and times say nothing. */
async function normalise(rootfs: string): Promise<void> {
  const builtTime = new Date(0);
  for await (const entry of await opendir(rootfs, { recursive: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (!entry.isSymbolicLink()) await chmod(file, entry.isDirectory() || (await lstat(file)).mode & 0o111 ? 0o755 : 0o644);
    await lutimes(file, builtTime, builtTime);
  }
  await chmod(rootfs, 0o755);
}
