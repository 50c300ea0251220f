import { lstat, opendir, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../errors/sluice-error.ts";
import type { EvidenceFormat } from "../evidence/evidence-store.ts";
import { defaultLimits } from "../sandbox/limits.ts";
import type { DataFile, DataFiles, LeftOut } from "./conversation-data.ts";
import { dataFileEndings } from "../protocol/data-files.ts";
import { formatOf, stemOf, toPrintable } from "./data-formats.ts";
import type { ReaderOptions } from "../protocol/reader.ts";
import { splitReaderOptions, toReaderExample, type GivenFile } from "./reader-options.ts";
import { createFileContent } from "./create-file-content.ts";

export interface DataFilesOptions {
  /** The files and folders given with `--data`. */
  readonly paths: readonly string[];
  /** A larger file becomes an alias but is refused when it is used. Default: the input limit of a sandbox. */
  readonly maxFileBytes?: number;
  readonly bounds?: Partial<WalkBounds>;
}

interface WalkBounds {
  /** Most files that become aliases. */
  readonly maxFiles: number;
  /** Deepest level of folders below the given one. */
  readonly maxDepth: number;
  /** Most directory entries to examine. */
  readonly maxEntries: number;
}

interface FoundFile {
  readonly name: string;
  /** The path as the user would write it. */
  readonly path: string;
  /** The real path, as bytes because file names need not be UTF-8. */
  readonly real: Buffer;
  readonly format: EvidenceFormat;
  readonly reader?: ReaderOptions | undefined;
}

interface FoundFiles {
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
  readonly reader: ReaderOptions | undefined;
  readonly real: Buffer;
  readonly isFolder: boolean;
}

/**
 * Resolves the given paths once, including symbolic links, and finds the data files below them. Reads no file. Rejects with DATA_PATH_MISSING or
 * DATA_PATH_REFUSED if a path cannot be used.
 */
export async function openDataFiles({ paths, maxFileBytes = defaultLimits.inputBytes, bounds = {} }: DataFilesOptions): Promise<DataFiles> {
  const roots: Root[] = [];
  for (const given of paths) roots.push(await resolveRoot(await splitReaderOptions(given)));
  const known = new Map<string, DataFile>();
  let files: readonly DataFile[] = [];
  let leftOut: readonly LeftOut[] = [];

  async function refresh(): Promise<void> {
    const foundFiles: FoundFile[] = [];
    const nowLeftOut: LeftOut[] = [];
    for (const root of roots) {
      const found = await findFiles(root, { ...defaultWalkBounds, ...bounds });
      foundFiles.push(...found.files);
      nowLeftOut.push(...found.leftOut);
    }
    const current = new Map<string, DataFile>();
    for (const file of foundFiles) {
      const key = file.real.toString("latin1");
      const same = current.get(key);
      if (same === undefined) current.set(key, known.get(key) ?? toDataFile(file, maxFileBytes));
      else if (file.reader !== undefined && same.reader === undefined) current.set(key, { ...same, reader: file.reader });
      else nowLeftOut.push({ path: file.path, why: `it is the same file as ${same.path}` });
    }
    for (const [key, file] of current) known.set(key, file);
    files = [...known.values()]; // a deleted file stays an alias; using it reports that the file is gone
    leftOut = nowLeftOut;
  }

  await refresh();
  return { files: () => files, leftOut: () => leftOut, refresh };
}

async function findFiles({ given, reader, real, isFolder }: Root, bounds: WalkBounds): Promise<FoundFiles> {
  if (!isFolder) return { files: [{ name: given, path: toPrintable(given), real, reader, format: formatOf(given)! }], leftOut: [] };
  try {
    return await walkFolder({ root: real, shown: given, bounds });
  } catch (error) {
    return { files: [], leftOut: [{ path: toPrintable(given), why: `cannot be read: ${(error as Error).message}` }] };
  }
}

function toDataFile({ name, path: shown, real, format, reader }: FoundFile, maxBytes: number): DataFile {
  const content = createFileContent({ real, kind: "file", format, maxBytes });
  return { stem: stemOf(name), path: shown, format, content, reader, readerExample: toReaderExample("--data ", shown) };
}

async function resolveRoot({ path: given, reader }: GivenFile): Promise<Root> {
  const real = await realpath(given, { encoding: "buffer" }).catch((error: unknown) => {
    throw missing(given, error);
  });
  const found = await stat(real);
  if (found.isDirectory()) {
    if (!(await lstat(real)).isDirectory()) throw refused(given, "it changed while it was examined");
    return { given, reader, real, isFolder: true };
  }
  if (!found.isFile()) throw refused(given, "it is neither a file nor a folder");
  if (formatOf(given) === null) throw refused(given, `its extension is not one of ${dataFileEndings.join(", ")}`);
  return { given, reader, real, isFolder: false };
}

function missing(given: string, cause: unknown): UsageError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const why = code === "ENOENT" ? "no such file or folder" : code === "EACCES" ? "permission denied" : message;
  return new UsageError({
    code: "DATA_PATH_MISSING",
    message: `Cannot use ${toPrintable(given)} as data: ${why}.`,
    hint: "--data takes the path of a file or a folder.",
    cause,
  });
}

function refused(given: string, why: string): UsageError {
  return new UsageError({
    code: "DATA_PATH_REFUSED",
    message: `Cannot use ${toPrintable(given)} as data: ${why}.`,
    hint: `--data takes files with these extensions, or folders that contain such files: ${dataFileEndings.join(", ")}.`,
  });
}

const separator = Buffer.from("/");

/** Finds the data files in a folder and its subfolders, sorted by path. Follows symbolic links only to files inside the folder. Reports what it leaves out. */
async function walkFolder({ root, shown, bounds }: { root: Buffer; shown: string; bounds: WalkBounds }): Promise<FoundFiles> {
  const files: FoundFile[] = [];
  const leftOut: LeftOut[] = [];
  const otherExtensions = new Set<string>();
  let others = 0;
  let hidden = 0;
  let examined = 0;
  let overLimit = 0;

  async function enter(folder: Buffer, below: string, depth: number): Promise<void> {
    for (const entry of await readEntries(folder, bounds.maxEntries - examined)) {
      examined += 1;
      const place = path.posix.join(below, entry.name.toString());
      if (entry.name[0] === 0x2e) hidden += 1;
      else if (entry.isFolder && depth < bounds.maxDepth) await enter(join(folder, entry.name), place, depth + 1);
      else if (entry.isFolder) leftOut.push({ path: toPrintable(place), why: `it is more than ${bounds.maxDepth} folders deep` });
      else await addFile(folder, entry, place);
    }
  }

  async function addFile(folder: Buffer, entry: Entry, place: string): Promise<void> {
    const name = entry.name.toString();
    const format = formatOf(name);
    const leaveOut = (why: string): void => void leftOut.push({ path: toPrintable(place), why });
    if (!entry.isLink && !entry.isFile) return leaveOut("it is not a regular file");
    if (format === null && !entry.isLink) return countOther(name);
    const real = entry.isLink ? await resolveLink(join(folder, entry.name)) : { path: join(folder, entry.name), isFile: true };
    if (real === null) return leaveOut("it is a broken symbolic link");
    if (!isInside(real.path, root)) return leaveOut("it is a symbolic link that points outside the given folder");
    if (!real.isFile || format === null) return leaveOut("it is a symbolic link to something that is not a data file");
    if (files.length < bounds.maxFiles) files.push({ name, path: toPrintable(place), real: real.path, format });
    else overLimit += 1;
  }

  function countOther(name: string): void {
    others += 1;
    otherExtensions.add(toPrintable(path.extname(name).toLowerCase().slice(0, 12)) || "no extension");
  }

  await enter(root, shown, 0);
  const report = (why: string): void => void leftOut.push({ path: toPrintable(shown), why });
  if (others > 0) report(`${others} file(s) that are not data: ${listExtensions(otherExtensions)}`);
  if (hidden > 0) report(`${hidden} hidden file(s) or folder(s)`);
  if (overLimit > 0) report(`${overLimit} file(s) over the limit of ${bounds.maxFiles}: give a smaller folder, or single files`);
  if (examined >= bounds.maxEntries) report(`everything after the first ${bounds.maxEntries} entries`);
  return { files, leftOut };
}

/** Reads directory entries, sorted by name so that the same folder always gives the same aliases. */
async function readEntries(folder: Buffer, maxCount: number): Promise<Entry[]> {
  const entries: Entry[] = [];
  // The type definitions do not know that names can be buffers.
  const directory = await opendir(folder, { encoding: "buffer" as BufferEncoding });
  for await (const one of directory) {
    if (entries.length >= maxCount) break; // leaving the loop closes the directory
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

function listExtensions(extensions: ReadonlySet<string>): string {
  const names = [...extensions].sort();
  return `${names.slice(0, 8).join(", ")}${names.length > 8 ? " …" : ""}`;
}
