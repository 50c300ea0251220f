import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { promisify } from "node:util";

export interface Runsc {
  readonly path: string;
  /** As it names itself, `0.0~20240729.0` or `release-20260817.0`. */
  readonly version: string;
  /** From the version, when it says so. */
  readonly releasedAt: Date | null;
}

export interface FindRunscOptions {
  /** Taken as it is when given. */
  readonly runscPath?: string;
  /** Directories separated by colons, as in PATH. */
  readonly searchPath: string;
  /** The one that set-up extracted, if it did. */
  readonly fallback: string;
}

export async function findRunsc({ runscPath, searchPath, fallback }: FindRunscOptions): Promise<Runsc | null> {
  const candidates =
    runscPath === undefined
      ? [
          ...searchPath
            .split(":")
            .filter(isAbsolute)
            .map((directory) => join(directory, "runsc")),
          fallback,
        ]
      : [runscPath];
  for (const path of candidates) {
    if (await isExecutable(path)) return describeRunsc(path);
  }
  return null;
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

/** For a person: `released 2024-07-29, 27 months ago`. */
export function describeAge({ releasedAt }: Runsc, now: Date = new Date()): string {
  if (releasedAt === null) return "release date unknown";
  const months = Math.max(0, Math.round((now.getTime() - releasedAt.getTime()) / (30.44 * 86_400_000)));
  return `released ${releasedAt.toISOString().slice(0, 10)}, ${months === 1 ? "1 month" : `${months} months`} ago`;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
