import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { access, chmod, constants, mkdir, rename } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import { openBuildDirectory } from "../../snapshot/build-directory.ts";
import { downloadDebianPackages, requireSystemPackages } from "../../snapshot/debian-packages.ts";
import { type OnProgress, runStep } from "../../snapshot/progress.ts";
import { runProgram } from "../../snapshot/run-program.ts";

/** The program of gVisor that starts sandboxes. */
export interface Runsc {
  readonly path: string;
  /** As `runsc --version` prints it: `0.0~20240729.0` or `release-20260817.0`. */
  readonly version: string;
  /** Parsed from the version; null when the version contains no date. */
  readonly releasedAt: Date | null;
}

export interface FindRunscOptions {
  /** If given, no other place is searched. */
  readonly runscPath?: string;
  /** Directories separated by colons, as in PATH. */
  readonly searchPath: string;
  /** Where `fetchRunsc` puts it. */
  readonly fallback: string;
}

/** Null when there is no executable runsc. Rejects when the one found does not run. */
export async function findRunsc({ runscPath, searchPath, fallback }: FindRunscOptions): Promise<Runsc | null> {
  const candidates = runscPath === undefined ? [...listCandidates(searchPath), fallback] : [runscPath];
  for (const path of candidates) {
    if (await isExecutable(path)) return describeRunsc(path);
  }
  return null;
}

function listCandidates(searchPath: string): string[] {
  return searchPath
    .split(":")
    .filter(isAbsolute)
    .map((directory) => join(directory, "runsc"));
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function describeRunsc(path: string): Promise<Runsc> {
  const { stdout } = await promisify(execFile)(path, ["--version"], { timeout: 10_000, env: {} });
  const version = /^runsc version (\S+)/m.exec(stdout)?.[1] ?? "unknown";
  return { path, version, releasedAt: toReleaseDate(version) };
}

export function toReleaseDate(version: string): Date | null {
  const match = /(20\d{2})(0[1-9]|1[0-2])([0-3]\d)/.exec(version);
  if (match === null) return null;
  const date = new Date(`${match[1]}-${match[2]}-${match[3]}T00:00:00Z`);
  return Number.isNaN(date.getTime()) ? null : date;
}

/** For example `released 2024-07-29, 27 months ago`. */
export function describeAge({ releasedAt }: Runsc, now: Date = new Date()): string {
  if (releasedAt === null) return "release date unknown";
  const months = Math.max(0, Math.round((now.getTime() - releasedAt.getTime()) / (30.44 * 86_400_000)));
  return `released ${releasedAt.toISOString().slice(0, 10)}, ${months === 1 ? "1 month" : `${months} months`} ago`;
}

export interface FetchRunscOptions {
  readonly cacheDirectory: string;
  readonly searchPath: string;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

/**
 * Extracts runsc from Debian's package into the cache's `tools/`, unless PATH or the cache already has one.
 * The program is statically linked, so it also runs on older releases.
 */
export async function fetchRunsc({ cacheDirectory, searchPath, onProgress, signal }: FetchRunscOptions): Promise<void> {
  const final = join(cacheDirectory, "tools", "runsc");
  const present = await Promise.all([final, ...listCandidates(searchPath)].map(isExecutable));
  if (present.includes(true)) return;
  await requireSystemPackages(signal);
  await using build = await openBuildDirectory(cacheDirectory);
  const { directory } = build;
  await runStep("gVisor (runsc)", onProgress, async (report) => {
    const archives = await downloadDebianPackages({ names: ["runsc"], directory, onLine: report, signal });
    const archive = archives.find((file) => basename(file).startsWith("runsc_"));
    if (!archive) throw new Error("Debian has no runsc for this machine.");
    await runProgram({ program: "dpkg-deb", args: ["-x", archive, join(directory, "runsc")], signal });
    await mkdir(dirname(final), { recursive: true });
    const binary = join(directory, "runsc", "usr", "bin", "runsc");
    await chmod(binary, 0o755);
    await rename(binary, final);
    return { value: undefined, detail: basename(archive).split("_")[1] };
  });
}

/**
 * The flags of every runsc command.
 * - `--directfs=false`: the gofer opens files, so the sandbox process can run as nobody without capabilities. This does not slow down restore.
 *   Without root, runsc cannot switch to nobody, and the sandbox process opens the snapshot's files itself.
 * - `--overlay2=none`: the root is read-only, so it needs no overlay and no file store beside it.
 * - `--ignore-cgroups`: we put runsc into our own cgroup before it starts.
 * - `--file-access=exclusive`: a snapshot never changes while it is in use.
 */
export function toRunscFlags({ rootless }: { rootless: boolean }): string[] {
  return [
    "--network=none",
    "--host-uds=none",
    "--host-fifo=none",
    "--platform=systrap",
    "--oci-seccomp",
    "--overlay2=none",
    "--file-access=exclusive",
    `--directfs=${rootless}`,
    "--ignore-cgroups",
  ];
}

/**
 * The commands to put before runsc. Without root, runsc runs as root of a new user namespace; runsc's own `--rootless` does the same but cannot
 * restore. `setpriv --pdeathsig` comes last, because entering a namespace clears the signal. Both programs belong to util-linux, which every Debian has.
 */
export function toRunscPrefix({ rootless }: { rootless: boolean }): string[] {
  const setpriv = "/usr/bin/setpriv";
  return [...(rootless ? userNamespaceCommand : []), ...(existsSync(setpriv) ? [setpriv, "--pdeathsig", "KILL"] : [])];
}

/** Runs the command that follows as root of a new user namespace that contains only the current user. */
export const userNamespaceCommand: readonly string[] = ["/usr/bin/unshare", "--user", "--map-root-user"];
