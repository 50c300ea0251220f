import { hash } from "node:crypto";
import { lstat, opendir, readFile, readlink } from "node:fs/promises";
import path from "node:path";

/** One entry of a root file system, as it was when it was built. */
export interface ListedFile {
  readonly path: string;
  readonly kind: "file" | "directory" | "link";
  readonly mode: number;
  readonly size: number;
  /** sha256 of the content, or the target of a link; empty for a directory. */
  readonly content: string;
}

const readersAtOnce = 16;

/** Every entry below the root, in a fixed order, with its content's hash. Reads everything: about a second for a snapshot. */
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
  await Promise.all(Array.from({ length: readersAtOnce }, read));
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

/** One line an entry: kind, mode, size, content and path, with tabs between. */
export function formatFileList(files: readonly ListedFile[]): string {
  return files.map(({ kind, mode, size, content, path: name }) => `${[kind, mode.toString(8), size, content, name].join("\t")}\n`).join("");
}

/** What is not as it was built, as sentences; at most `limit` of them. */
export function differences(recorded: string, present: readonly ListedFile[], limit = 10): string[] {
  const now = new Set(formatFileList(present).trimEnd().split("\n"));
  const then = new Set(recorded.trimEnd().split("\n"));
  const changed = new Set<string>();
  for (const line of then) if (!now.has(line)) changed.add(pathOf(line));
  for (const line of now) if (!then.has(line)) changed.add(pathOf(line));
  return [...changed]
    .sort()
    .slice(0, limit)
    .map((name) => `${name} is not as it was built`);
}

function pathOf(line: string): string {
  return line.split("\t").at(-1) ?? line;
}

/** What a tree takes on disk; a file with several names counts once. */
export async function diskBytes(directory: string): Promise<number> {
  const seen = new Set<number>();
  let bytes = 0;
  for await (const entry of await opendir(directory, { recursive: true })) {
    const status = await lstat(path.join(entry.parentPath, entry.name));
    if (seen.has(status.ino)) continue;
    seen.add(status.ino);
    bytes += status.blocks * 512;
  }
  return bytes;
}
