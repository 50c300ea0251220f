import { lstat, realpath, stat } from "node:fs/promises";
import { UsageError } from "../../errors/sluice-error.ts";
import { defaultLimits } from "../../sandbox/limits.ts";
import type { DataFile, DataFiles, LeftOut } from "../contract.ts";
import { dataFileEndings } from "../../protocol/data-files.ts";
import { formatOf, stemOf, toPrintable } from "../data-formats.ts";
import { createFileContent } from "./create-file-content.ts";
import { walkFolder, type FoundFile, type WalkBounds } from "./walk-folder.ts";

export interface DataFilesOptions {
  /** Files and folders, as `--data` gave them. */
  readonly paths: readonly string[];
  /** A larger file is listed, and refused when it is used. What a sandbox takes of inputs unless told. */
  readonly maxFileBytes?: number;
  readonly bounds?: Partial<WalkBounds>;
}

const defaultWalkBounds: WalkBounds = { maxFiles: 200, maxDepth: 8, maxEntries: 20_000 };

interface Root {
  readonly given: string;
  readonly real: Buffer;
  readonly isFolder: boolean;
}

/**
 * Resolves what was given, once: a link that is given leads where it led then. Nothing is read. Rejects with DATA_PATH_MISSING or DATA_PATH_REFUSED
 * when one of the paths cannot be used at all.
 */
export async function openDataFiles({ paths, maxFileBytes = defaultLimits.inputBytes, bounds = {} }: DataFilesOptions): Promise<DataFiles> {
  const roots: Root[] = [];
  for (const given of paths) roots.push(await resolveRoot(given));
  const known = new Map<string, DataFile>();
  let files: readonly DataFile[] = [];
  let leftOut: readonly LeftOut[] = [];

  async function refresh(): Promise<void> {
    const found: FoundFile[] = [];
    const left: LeftOut[] = [];
    for (const root of roots) {
      const walked = await findFiles(root, { ...defaultWalkBounds, ...bounds });
      found.push(...walked.files);
      left.push(...walked.leftOut);
    }
    const now = new Map<string, DataFile>();
    for (const one of found) {
      const key = one.real.toString("latin1");
      const same = now.get(key);
      if (same === undefined) now.set(key, known.get(key) ?? toDataFile(one, maxFileBytes));
      else left.push({ path: one.path, why: `it is the same file as ${same.path}` });
    }
    for (const [key, file] of now) known.set(key, file);
    files = [...known.values()]; // one that is gone stays an alias, and says that it is gone when it is used
    leftOut = left;
  }

  await refresh();
  return { files: () => files, leftOut: () => leftOut, refresh };
}

async function findFiles(
  { given, real, isFolder }: Root,
  bounds: WalkBounds,
): Promise<{ files: readonly FoundFile[]; leftOut: readonly LeftOut[] }> {
  if (!isFolder) return { files: [{ name: given, path: toPrintable(given), real, format: formatOf(given)! }], leftOut: [] };
  try {
    return await walkFolder({ root: real, shown: given, bounds });
  } catch (error) {
    return { files: [], leftOut: [{ path: toPrintable(given), why: `it cannot be read: ${(error as Error).message}` }] };
  }
}

function toDataFile({ name, path, real, format }: FoundFile, maxBytes: number): DataFile {
  return { stem: stemOf(name), path, format, content: createFileContent({ real, kind: "file", format, maxBytes }) };
}

async function resolveRoot(given: string): Promise<Root> {
  const real = await realpath(given, { encoding: "buffer" }).catch((error: unknown) => {
    throw missing(given, error);
  });
  const found = await stat(real);
  if (found.isDirectory()) {
    if (!(await lstat(real)).isDirectory()) throw refused(given, "it changed while it was looked at");
    return { given, real, isFolder: true };
  }
  if (!found.isFile()) throw refused(given, "it is neither a file nor a folder");
  if (formatOf(given) === null) throw refused(given, `its ending is not one of ${dataFileEndings.join(", ")}`);
  return { given, real, isFolder: false };
}

function missing(given: string, cause: unknown): UsageError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const why = code === "ENOENT" ? "there is no such file or folder" : code === "EACCES" ? "permission was denied" : message;
  return new UsageError({
    code: "DATA_PATH_MISSING",
    message: `The data ${toPrintable(given)} cannot be used: ${why}.`,
    hint: "Give --data the path of a file or of a folder.",
    cause,
  });
}

function refused(given: string, why: string): UsageError {
  return new UsageError({
    code: "DATA_PATH_REFUSED",
    message: `The data ${toPrintable(given)} cannot be used: ${why}.`,
    hint: "Give --data files with these endings, or folders that hold such files.",
  });
}
