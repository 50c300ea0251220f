import { lstat, opendir, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../errors/sluice-error.ts";
import type { EvidenceFormat } from "../evidence/evidence-store.ts";
import { defaultLimits } from "../sandbox/limits.ts";
import type { DataFile, DataFiles, LeftOut } from "./conversation-data.ts";
import { dataFileEndings } from "../protocol/data-files.ts";
import { formatOf, stemOf, toPrintable } from "./data-formats.ts";
import { createFileContent } from "./create-file-content.ts";

export interface DataFilesOptions {
  /** Files and folders, as `--data` gave them. */
  readonly paths: readonly string[];
  /** A larger file is listed, and refused when it is used. What a sandbox takes of inputs unless told. */
  readonly maxFileBytes?: number;
  readonly bounds?: Partial<WalkBounds>;
}

interface WalkBounds {
  /** Files that become aliases. */
  readonly maxFiles: number;
  /** Folders below the one that was given. */
  readonly maxDepth: number;
  /** Entries that are looked at. */
  readonly maxEntries: number;
}

interface FoundFile {
  readonly name: string;
  /** As the user would write it. */
  readonly path: string;
  /** Without any link in it. Bytes, because not every name is text. */
  readonly real: Buffer;
  readonly format: EvidenceFormat;
}

interface Walked {
  readonly files: readonly FoundFile[];
  readonly leftOut: readonly LeftOut[];
}

interface Entry {
  readonly name: Buffer;
  readonly isFolder: boolean;
  readonly isFile: boolean;
  readonly isLink: boolean;
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

async function findFiles({ given, real, isFolder }: Root, bounds: WalkBounds): Promise<Walked> {
  if (!isFolder) return { files: [{ name: given, path: toPrintable(given), real, format: formatOf(given)! }], leftOut: [] };
  try {
    return await walkFolder({ root: real, shown: given, bounds });
  } catch (error) {
    return { files: [], leftOut: [{ path: toPrintable(given), why: `it cannot be read: ${(error as Error).message}` }] };
  }
}

function toDataFile({ name, path: shown, real, format }: FoundFile, maxBytes: number): DataFile {
  return { stem: stemOf(name), path: shown, format, content: createFileContent({ real, kind: "file", format, maxBytes }) };
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

const separator = Buffer.from("/");

/** Data files of a folder and the folders in it, by path. Links are followed to files inside of it only. What is not taken is said. */
async function walkFolder({ root, shown, bounds }: { root: Buffer; shown: string; bounds: WalkBounds }): Promise<Walked> {
  const files: FoundFile[] = [];
  const leftOut: LeftOut[] = [];
  const others = new Map<string, number>();
  let hidden = 0;
  let looked = 0;
  let past = 0;

  async function enter(folder: Buffer, below: string, depth: number): Promise<void> {
    for (const entry of await readEntries(folder, bounds.maxEntries - looked)) {
      looked += 1;
      const place = path.posix.join(below, entry.name.toString());
      if (entry.name[0] === 0x2e) hidden += 1;
      else if (entry.isFolder && depth < bounds.maxDepth) await enter(join(folder, entry.name), place, depth + 1);
      else if (entry.isFolder) leftOut.push({ path: toPrintable(place), why: `it is more than ${bounds.maxDepth} folders deep` });
      else await take(folder, entry, place);
    }
  }

  async function take(folder: Buffer, entry: Entry, place: string): Promise<void> {
    const name = entry.name.toString();
    const format = formatOf(name);
    const leave = (why: string): void => void leftOut.push({ path: toPrintable(place), why });
    if (!entry.isLink && !entry.isFile) return leave("it is no regular file");
    if (format === null && !entry.isLink) return countOther(name);
    const real = entry.isLink ? await resolveLink(join(folder, entry.name)) : { path: join(folder, entry.name), isFile: true };
    if (real === null) return leave("it is a symbolic link to nothing");
    if (!isInside(real.path, root)) return leave("it is a symbolic link to a place outside of the given folder");
    if (!real.isFile || format === null) return leave("it is a symbolic link to something that is no data file");
    if (files.length < bounds.maxFiles) files.push({ name, path: toPrintable(place), real: real.path, format });
    else past += 1;
  }

  function countOther(name: string): void {
    const ending = toPrintable(path.extname(name).toLowerCase().slice(0, 12)) || "no ending";
    others.set(ending, (others.get(ending) ?? 0) + 1);
  }

  await enter(root, shown, 0);
  const say = (why: string): void => void leftOut.push({ path: toPrintable(shown), why });
  if (others.size > 0) say(`${sum(others)} file(s) that are no data: ${listEndings(others)}`);
  if (hidden > 0) say(`${hidden} hidden file(s) or folder(s)`);
  if (past > 0) say(`${past} file(s) past the first ${bounds.maxFiles}: give a smaller folder, or the files by name`);
  if (looked >= bounds.maxEntries) say(`whatever comes after ${bounds.maxEntries} entries`);
  return { files, leftOut };
}

/** By name, so that the same folder gives the same aliases. */
async function readEntries(folder: Buffer, most: number): Promise<Entry[]> {
  const entries: Entry[] = [];
  // Names as bytes: the types know names as text only.
  const directory = await opendir(folder, { encoding: "buffer" as BufferEncoding });
  for await (const one of directory) {
    if (entries.length >= most) break; // the loop closes it
    const name = one.name as unknown as Buffer;
    entries.push({ name, isFolder: one.isDirectory(), isFile: one.isFile(), isLink: one.isSymbolicLink() });
  }
  return entries.sort((a, b) => Buffer.compare(a.name, b.name));
}

function join(folder: Buffer, name: Buffer): Buffer {
  return Buffer.concat([folder, separator, name]);
}

async function resolveLink(link: Buffer): Promise<{ path: Buffer; isFile: boolean } | null> {
  try {
    const real = await realpath(link, { encoding: "buffer" });
    return { path: real, isFile: (await stat(real)).isFile() };
  } catch {
    return null;
  }
}

function isInside(real: Buffer, root: Buffer): boolean {
  return real.subarray(0, root.length + 1).equals(join(root, Buffer.alloc(0)));
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((total, count) => total + count, 0);
}

function listEndings(others: ReadonlyMap<string, number>): string {
  const names = [...others.keys()].sort();
  return `${names.slice(0, 8).join(", ")}${names.length > 8 ? " …" : ""}`;
}
