import { access, constants, mkdir, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { SluiceError, UsageError } from "../errors/sluice-error.ts";
import type { CellArtifact } from "../protocol/outcome.ts";

export interface WrittenArtifact {
  readonly artifact: CellArtifact;
  readonly file: string;
  readonly url: string;
}

/** Throws before a cell runs if its artifacts could not be written. Creates nothing, because a cell without artifacts needs no directory. */
export async function checkWritable(directory: string): Promise<void> {
  try {
    for (let existing = path.resolve(directory); ; existing = path.dirname(existing)) {
      const found = await stat(existing).catch(ignoreMissing);
      if (found === null) continue;
      if (!found.isDirectory()) throw new Error(`${existing} is not a directory`);
      return await access(existing, constants.W_OK | constants.X_OK);
    }
  } catch (cause) {
    const message = `Cannot write artifacts to ${directory}: ${(cause as Error).message}.`;
    throw new UsageError({ code: "WRONG_USAGE", message, hint: "Choose another directory with --out.", cause });
  }
}

/** Writes artifacts to a directory. */
export async function writeArtifacts(artifacts: readonly CellArtifact[], directory: string): Promise<WrittenArtifact[]> {
  const written: WrittenArtifact[] = [];
  try {
    if (artifacts.length > 0) await makeDirectory(path.resolve(directory));
    for (const [index, artifact] of artifacts.entries()) {
      const file = path.join(directory, nameArtifactFile(artifact, index));
      await writeFile(file, artifact.bytes);
      written.push({ artifact, file, url: toFileUrl(file) });
    }
  } catch (cause) {
    throw new SluiceError({
      code: "ARTIFACTS_NOT_WRITTEN",
      message: `The cell ran, but its artifacts cannot be written to ${directory}: ${(cause as Error).message}.`,
      cause,
    });
  }
  return written;
}

/** The name of an artifact's file: its kind, a number and its hash, never text from the sandbox. */
export function nameArtifactFile({ kind, contentHash }: Pick<CellArtifact, "kind" | "contentHash">, index: number): string {
  return `${kind}-${index + 1}-${contentHash.slice(0, 8)}.${kind === "image" ? "png" : "json"}`;
}

export function toFileUrl(file: string): string {
  return pathToFileURL(path.resolve(file)).href;
}

/** Creates a directory and its parents, one at a time. The recursive mkdir of Node.js never returns on file systems such as /proc, which refuse new entries. */
export async function makeDirectory(directory: string): Promise<void> {
  if ((await stat(directory).catch(ignoreMissing)) !== null) return;
  await makeDirectory(path.dirname(directory));
  await mkdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}

function ignoreMissing(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT") return null;
  throw error;
}
