import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { CellArtifact } from "../protocol/outcome.ts";

export interface WrittenArtifact {
  readonly artifact: CellArtifact;
  readonly file: string;
  readonly url: string;
}

/** Writes artifacts to a directory under names made from their number and content, never from what the sandbox said. */
export async function writeArtifacts(artifacts: readonly CellArtifact[], directory: string): Promise<WrittenArtifact[]> {
  if (artifacts.length > 0) await mkdir(directory, { recursive: true });
  const written: WrittenArtifact[] = [];
  for (const [index, artifact] of artifacts.entries()) {
    const extension = artifact.kind === "image" ? "png" : "json";
    const file = path.join(directory, `${artifact.kind}-${index + 1}-${artifact.contentHash.slice(0, 8)}.${extension}`);
    await writeFile(file, artifact.bytes);
    written.push({ artifact, file, url: pathToFileURL(path.resolve(file)).href });
  }
  return written;
}
