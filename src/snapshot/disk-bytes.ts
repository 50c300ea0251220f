import { lstat, opendir } from "node:fs/promises";
import path from "node:path";

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
