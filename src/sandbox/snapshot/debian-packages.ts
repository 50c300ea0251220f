import { mkdir, readdir, stat } from "node:fs/promises";
import path from "node:path";
import { NoSandboxError } from "../../errors/sluice-error.ts";
import { recipe } from "./recipe.ts";
import { runProgram, tryProgram } from "./run-program.ts";

interface DownloadOptions {
  readonly names: readonly string[];
  readonly directory: string;
  readonly onLine?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Downloads packages and their dependencies as .deb files, verified with Debian's keys. mmdebstrap's `extract` variant runs no code of the packages,
 * so this needs neither root nor a chroot, and works on hosts with another release.
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

/** mmdebstrap starts with an empty apt configuration, so pass on the host's settings for proxies and retries. */
async function hostAptOptions(signal: AbortSignal | undefined): Promise<string[]> {
  const dump = await runProgram({ program: "apt-config", args: ["dump", "--format", '%f "%v";%n'], signal });
  return dump
    .split("\n")
    .filter((line) => /^Acquire::(?:https?::(?:Proxy|CaInfo)|Retries)\b[^"]* "[^"]+";$/i.test(line))
    .map((line) => `--aptopt=${line}`);
}

interface UnpackOptions {
  readonly archives: readonly string[];
  readonly rootfs: string;
  readonly signal?: AbortSignal;
}

/** Unpacks the packages, except those that a sandbox must not contain. Returns the version of each package and the size of their archives. */
export async function unpackDebianPackages(options: UnpackOptions): Promise<{ versions: Record<string, string>; bytes: number }> {
  const { archives, rootfs, signal } = options;
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

/** Compares prefixes only. `verify` imports every library and so notices if a needed package was left out. */
function isLeftOut(name: string): boolean {
  return recipe.leftOutPackages.some((prefix) => name.startsWith(prefix));
}

/**
 * Debian packages that a build needs on the host, each with a shell command that succeeds if the package is installed.
 * scripts/setup.mjs has the same names, for machines that do not have Node.js 24 yet.
 */
export const systemPackages: Readonly<Record<string, string>> = {
  bubblewrap: "command -v bwrap",
  "ca-certificates": "test -e /etc/ssl/certs/ca-certificates.crt",
  "debian-archive-keyring": `ls /usr/share/keyrings/debian-archive-${recipe.suite}-stable.*`,
  mmdebstrap: "command -v mmdebstrap",
  "python3-pip": "python3 -c 'import pip' || /usr/bin/python3 -c 'import pip'",
};

/** Throws an error that names all missing packages. Call it before any download. */
export async function requireSystemPackages(signal?: AbortSignal): Promise<void> {
  const missing: string[] = [];
  for (const [name, check] of Object.entries(systemPackages)) {
    const { exitCode } = await tryProgram({ program: "sh", args: ["-c", check], signal });
    if (exitCode !== 0) missing.push(name);
  }
  if (missing.length === 0) return;
  throw new NoSandboxError({
    code: "SYSTEM_PACKAGES_MISSING",
    message: `System packages that Sluice needs are not installed (Debian names): ${missing.join(", ")}.`,
    hint: `Run once: sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends ${missing.join(" ")}'`,
    details: { missing },
  });
}
