import { execFile } from "node:child_process";
import { access, chmod, constants, mkdir, realpath, rename } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import type { Cgroups } from "../../cgroup/host-cgroups.ts";
import type { Preflight } from "../../contract.ts";
import { openBuildDirectory } from "../../snapshot/build-directory.ts";
import { downloadDebianPackages, requireSystemPackages } from "../../snapshot/debian-packages.ts";
import { type OnProgress, runStep } from "../../snapshot/progress.ts";
import { runProgram } from "../../snapshot/run-program.ts";
import { userNamespaceCommand } from "./runsc-process.ts";

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
  /** May contain a runsc that `installRunsc` or `fetchRunsc` put there. */
  readonly cacheDirectory: string;
}

/** Null when there is no executable runsc. Rejects when the one found does not run. */
export async function findRunsc({ runscPath, ...places }: FindRunscOptions): Promise<Runsc | null> {
  for (const path of runscPath === undefined ? listCandidates(places) : [runscPath]) {
    if (await isExecutable(path)) return describeRunsc(await realpath(path));
  }
  return null;
}

/** The one that the operator chose, those on PATH, and the one from Debian's package. */
function listCandidates({ searchPath, cacheDirectory }: Omit<FindRunscOptions, "runscPath">): string[] {
  const directories = searchPath.split(":").filter(isAbsolute);
  return [verifiedRunsc(cacheDirectory), ...directories.map((directory) => join(directory, "runsc")), debianRunsc(cacheDirectory)];
}

/** A link to the program that `installRunsc` installed last. */
export function verifiedRunsc(cacheDirectory: string): string {
  return join(cacheDirectory, "tools", "verified-runsc");
}

function debianRunsc(cacheDirectory: string): string {
  return join(cacheDirectory, "tools", "runsc");
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

export async function describeRunsc(path: string): Promise<Runsc> {
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

export const runscMissing = {
  reason: "gVisor's program runsc was not found.",
  fix: "Run `sluice prepare`, which extracts it from Debian's packages, or install gVisor so that runsc is on PATH.",
} as const;

interface GvisorPreflightOptions {
  readonly locateRunsc: () => Promise<Runsc | null>;
  readonly rootless: boolean;
  readonly cgroups: Cgroups;
  /** Why checkpoints do not work on this machine, if an attempt has failed. */
  readonly coldReason: string | null;
}

const OLD_AFTER_DAYS = 365;

/** Checks platform, rights and runsc. Starts no sandbox and never throws. */
export async function preflightGvisor({ locateRunsc, rootless, cgroups, coldReason }: GvisorPreflightOptions): Promise<Preflight> {
  if (process.platform !== "linux") return unusable("gVisor runs on Linux only.", "Run Sluice on a Linux machine.");
  if (process.arch !== "x64" && process.arch !== "arm64")
    return unusable(`gVisor does not run on ${process.arch} processors.`, "Use a machine with an x86-64 or ARM64 processor.");
  if (!rootless && process.getuid?.() !== 0)
    return unusable("The gvisor driver needs root, and this process is not root.", "Run as root, or use the driver gvisor-rootless.");
  if (rootless && !(await canCreateUserNamespace()))
    return unusable(
      "This user may not create a user namespace, which gvisor-rootless needs.",
      "Run as root and use the gvisor driver, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0).",
    );
  try {
    const runsc = await locateRunsc();
    if (runsc === null) return { usable: false, ...runscMissing };
    const notes = toNotes({ runsc, rootless, cgroups, coldReason });
    return { usable: true, version: `runsc ${runsc.version} (${describeAge(runsc)})`, notes };
  } catch (error) {
    return unusable(`runsc does not run on this machine: ${(error as Error).message}`, "Install a runsc for this processor and kernel.");
  }
}

function unusable(reason: string, fix: string): Preflight {
  return { usable: false, reason, fix };
}

/** Tries it, which takes a few milliseconds and is more reliable than reading the various settings that may forbid it. */
async function canCreateUserNamespace(): Promise<boolean> {
  const [program, ...args] = [...userNamespaceCommand, "/bin/true"];
  return promisify(execFile)(program, args, { timeout: 5_000, env: {} }).then(
    () => true,
    () => false,
  );
}

function toNotes({ runsc, rootless, cgroups, coldReason }: Omit<GvisorPreflightOptions, "locateRunsc"> & { runsc: Runsc }): string[] {
  const notes: string[] = [];
  if (runsc.releasedAt !== null && Date.now() - runsc.releasedAt.getTime() > OLD_AFTER_DAYS * 86_400_000) {
    notes.push(
      `This runsc is old (${describeAge(runsc)}) and lacks later fixes. To replace it, run sluice prepare --runsc with a newer one.`,
    );
  }
  if (!cgroups.available)
    notes.push(
      `No cgroup limits: ${cgroups.reason} Instead, memory is measured from outside every 25 ms, and the number of processes is limited only inside the sandbox.`,
    );
  if (rootless)
    notes.push(
      "Rootless: gVisor's processes run as the user who started Sluice, not as nobody, so code that breaks out has that user's rights.",
    );
  if (coldReason !== null) notes.push(`Checkpoints do not work on this machine, so every sandbox imports the stack itself: ${coldReason}`);
  return notes;
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
  const final = debianRunsc(cacheDirectory);
  const present = await Promise.all(listCandidates({ searchPath, cacheDirectory }).map(isExecutable));
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
