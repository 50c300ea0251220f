import { createHash, randomBytes } from "node:crypto";
import { link, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { SluiceError } from "../errors/sluice-error.ts";
import type { ArtifactStore } from "./contract.ts";

/** One file an artifact, `ab/abcd….png`. A file appears whole or not at all, whoever dies meanwhile. */
export function createFileStore({ directory }: { directory: string }): ArtifactStore {
  const fileOf = (contentHash: string, type: string): string => path.join(directory, contentHash.slice(0, 2), `${contentHash}.${type}`);

  return {
    async put({ bytes, type }) {
      const contentHash = createHash("sha256").update(bytes).digest("hex");
      const file = fileOf(contentHash, type);
      try {
        if (!(await isThere(file, bytes.length))) await writeOnce(file, bytes);
      } catch (error) {
        throw unavailable(directory, error);
      }
      return { contentHash, type, bytes: bytes.length, url: pathToFileURL(path.resolve(file)).href };
    },
    async get(contentHash, type) {
      if (!/^[0-9a-f]{64}$/.test(contentHash)) return null;
      const bytes = await readFile(fileOf(contentHash, type)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return null;
        throw unavailable(directory, error);
      });
      if (bytes === null) return null;
      if (createHash("sha256").update(bytes).digest("hex") !== contentHash) throw damaged(contentHash);
      return bytes;
    },
  };
}

async function isThere(file: string, bytes: number): Promise<boolean> {
  return await stat(file).then(
    (found) => found.size === bytes,
    () => false,
  );
}

async function writeOnce(file: string, bytes: Uint8Array): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  const draft = `${file}.${randomBytes(6).toString("hex")}.part`;
  try {
    await writeFile(draft, bytes, { flag: "wx" });
    await rm(file, { force: true }); // of another size: damaged
    await link(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error; // another writer of the same content was first
    });
  } finally {
    await rm(draft, { force: true });
  }
}

function unavailable(directory: string, cause: unknown): SluiceError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new SluiceError({
    code: "STORAGE_UNAVAILABLE",
    message: `Artifacts cannot be kept in ${directory}: ${why}.`,
    hint: "Free space or choose another directory.",
    cause,
  });
}

function damaged(contentHash: string): SluiceError {
  return new SluiceError({
    code: "ARTIFACT_DAMAGED",
    message: `The artifact ${contentHash} is not what its name says.`,
    hint: "The store was changed from outside; delete that file.",
  });
}
