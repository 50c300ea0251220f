import { hash } from "node:crypto";
import { lstat, opendir, readFile, readlink } from "node:fs/promises";
import path from "node:path";

/** One entry of a root file system. */
export interface ListedFile {
  readonly path: string;
  readonly kind: "file" | "directory" | "link";
  readonly mode: number;
  readonly size: number;
  /** sha256 of a file's content, target of a link, empty for a directory. */
  readonly content: string;
}

const CONCURRENT_READERS = 16;

/** Lists every entry below the root in a fixed order, with the hash of its content. Reads all files, which takes about a second for a snapshot. */
export async function listFiles(root: string, signal?: AbortSignal): Promise<ListedFile[]> {
  const paths: string[] = [];
  for await (const entry of await opendir(root, { recursive: true }))
    paths.push(path.relative(root, path.join(entry.parentPath, entry.name)));
  paths.sort();
  const listed: ListedFile[] = Array.from({ length: paths.length });
  let next = 0;
  const read = async (): Promise<void> => {
    while (next < paths.length) {
      signal?.throwIfAborted();
      const index = next++;
      listed[index] = await listFile(root, paths[index] ?? "");
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_READERS }, read));
  return listed;
}

async function listFile(root: string, relative: string): Promise<ListedFile> {
  const absolute = path.join(root, relative);
  const status = await lstat(absolute);
  const mode = status.mode & 0o7777;
  if (status.isSymbolicLink()) return { path: relative, kind: "link", mode, size: 0, content: await readlink(absolute) };
  if (!status.isFile()) return { path: relative, kind: "directory", mode, size: 0, content: "" };
  return { path: relative, kind: "file", mode, size: status.size, content: hash("sha256", await readFile(absolute)) };
}

/** One line per entry: kind, mode, size, content and path, separated by tabs. */
export function formatFileList(files: readonly ListedFile[]): string {
  return files.map(({ kind, mode, size, content, path: name }) => `${[kind, mode.toString(8), size, content, name].join("\t")}\n`).join("");
}

/** Compares the files with the recorded list. Returns at most `limit` sentences, one per changed path. */
export function listChanges(recorded: string, present: readonly ListedFile[], limit = 10): string[] {
  const now = new Set(formatFileList(present).trimEnd().split("\n"));
  const then = new Set(recorded.trimEnd().split("\n"));
  const changed = new Set<string>();
  for (const line of then) if (!now.has(line)) changed.add(toPath(line));
  for (const line of now) if (!then.has(line)) changed.add(toPath(line));
  return [...changed]
    .sort()
    .slice(0, limit)
    .map((name) => `${name} was changed after the build`);
}

function toPath(line: string): string {
  return line.split("\t").at(-1) ?? line;
}

/** Disk usage of a directory tree. Hard-linked files count once. */
export async function diskBytes(directory: string): Promise<number> {
  const countedInodes = new Set<number>();
  let bytes = 0;
  for await (const entry of await opendir(directory, { recursive: true })) {
    const status = await lstat(path.join(entry.parentPath, entry.name));
    if (countedInodes.has(status.ino)) continue;
    countedInodes.add(status.ino);
    bytes += status.blocks * 512;
  }
  return bytes;
}
