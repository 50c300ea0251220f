import { mkdir, readdir, stat } from "node:fs/promises";
import path from "node:path";
import { recipe } from "./recipe.ts";
import { runProgram } from "./run-program.ts";

export interface DebianPackages {
  readonly versions: Record<string, string>;
  readonly bytes: number;
}

interface DownloadOptions {
  readonly names: readonly string[];
  readonly directory: string;
  readonly onLine?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Brings packages of the suite with what they depend on, checked against Debian's keys, as .deb files. mmdebstrap's `extract` variant runs nothing of them,
 * so this needs no root and no chroot, and works on a host of another release.
 */
export async function downloadDebianPackages({ names, directory, onLine, signal }: DownloadOptions): Promise<string[]> {
  const archives = path.join(directory, "debs");
  const temporary = path.join(directory, "tmp");
  await mkdir(archives, { recursive: true });
  await mkdir(temporary, { recursive: true });
  await runProgram({
    program: "mmdebstrap",
    args: [
      ...["--variant=extract", "--format=null", `--mode=${process.getuid?.() === 0 ? "root" : "chrootless"}`],
      ...["--keyring=/usr/share/keyrings/debian-archive-keyring.gpg", "--skip=check/signed-by"],
      ...(await hostAptOptions(signal)),
      `--include=${names.join(",")}`,
      `--extract-hook=cp "$1"/var/cache/apt/archives/*.deb '${archives.replaceAll("'", String.raw`'\''`)}/'`,
      ...[recipe.suite, "/dev/null"],
    ],
    extraEnvironment: { TMPDIR: temporary },
    onLine,
    signal,
  });
  return (await readdir(archives)).sort().map((name) => path.join(archives, name));
}

/** mmdebstrap starts from an empty apt configuration; a proxy that the host's apt is told to use counts here too. */
async function hostAptOptions(signal: AbortSignal | undefined): Promise<string[]> {
  const dump = await runProgram({ program: "apt-config", args: ["dump", "--format", '%f "%v";%n'], signal });
  return dump
    .split("\n")
    .filter((line) => /^Acquire::(https?::(Proxy|CaInfo)|Retries)\b.* ".+";$/i.test(line))
    .map((line) => `--aptopt=${line}`);
}

/** Unpacks them, except those that have no business in a sandbox. */
export async function unpackDebianPackages({
  archives,
  rootfs,
  signal,
}: {
  archives: readonly string[];
  rootfs: string;
  signal?: AbortSignal;
}): Promise<DebianPackages> {
  const versions: Record<string, string> = {};
  let bytes = 0;
  await mkdir(rootfs, { recursive: true });
  for (const archive of archives) {
    const [name, version] = decodeURIComponent(path.basename(archive)).split("_");
    if (!name || !version || isLeftOut(name)) continue;
    await runProgram({ program: "dpkg-deb", args: ["-x", archive, rootfs], signal });
    versions[name] = version;
    bytes += (await stat(archive)).size;
  }
  return { versions, bytes };
}

/** Plain prefixes: what they leave out by mistake is missed by `verify`, which imports every library. */
function isLeftOut(name: string): boolean {
  return recipe.leftOutPackages.some((prefix) => name.startsWith(prefix));
}
