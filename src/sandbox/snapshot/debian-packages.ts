import { mkdir, readdir, stat } from "node:fs/promises";
import path from "node:path";
import { NoSandboxError } from "../../errors/sluice-error.ts";
import { recipe } from "./recipe.ts";
import { runProgram, tryProgram } from "./run-program.ts";

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

/** By Debian's names: what is true in a shell when the package is there. scripts/setup.mjs has the same names, for a machine that has no Node.js 24 yet. */
export const systemPackages: Readonly<Record<string, string>> = {
  bubblewrap: "command -v bwrap",
  "ca-certificates": "test -e /etc/ssl/certs/ca-certificates.crt",
  "debian-archive-keyring": `ls /usr/share/keyrings/debian-archive-${recipe.suite}-stable.*`,
  mmdebstrap: "command -v mmdebstrap",
  "python3-pip": "python3 -c 'import pip' || /usr/bin/python3 -c 'import pip'",
};

/** Says everything that is missing at once, before anything is brought. */
export async function requireSystemPackages(signal?: AbortSignal): Promise<void> {
  const missing: string[] = [];
  for (const [name, isThere] of Object.entries(systemPackages)) {
    const { exitCode } = await tryProgram({ program: "sh", args: ["-c", isThere], signal });
    if (exitCode !== 0) missing.push(name);
  }
  if (missing.length === 0) return;
  throw new NoSandboxError({
    code: "SYSTEM_PACKAGES_MISSING",
    message: `What sandboxes are made with is not installed (Debian's names): ${missing.join(", ")}.`,
    hint: `Run once: sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends ${missing.join(" ")}'`,
    details: { missing },
  });
}
