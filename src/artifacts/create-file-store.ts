import { createHash, randomBytes } from "node:crypto";
import { link, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { SluiceError } from "../errors/sluice-error.ts";
import type { ArtifactStore } from "./contract.ts";

/** One file an artifact, `ab/abcd….png`. A file appears whole or not at all, whoever dies meanwhile. */
export function createFileStore({ directory }: { directory: string }): ArtifactStore {
  const fileOf = (contentHash: string, type: string): string => path.join(directory, contentHash.slice(0, 2), `${contentHash}.${type}`);

  return {
    async put({ bytes, type }) {
      const contentHash = hashOf(bytes);
      const file = fileOf(contentHash, type);
      try {
        if (!(await holds(file, contentHash))) await writeOnce(file, bytes, contentHash);
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
      if (hashOf(bytes) !== contentHash) throw damaged(contentHash);
      return bytes;
    },
  };
}

async function holds(file: string, contentHash: string): Promise<boolean> {
  return await readFile(file).then(
    (bytes) => hashOf(bytes) === contentHash,
    () => false,
  );
}

async function writeOnce(file: string, bytes: Uint8Array, contentHash: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  const draft = `${file}.${randomBytes(6).toString("hex")}.part`;
  try {
    await writeDraft(draft, bytes);
    await link(draft, file).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
      if (!(await holds(file, contentHash))) await rename(draft, file); // damaged; else another writer of the same content was first
    });
  } finally {
    await rm(draft, { force: true });
  }
}

/** On the disk before it gets its name: a machine that loses power leaves no empty artifact. */
async function writeDraft(draft: string, bytes: Uint8Array): Promise<void> {
  await using handle = await open(draft, "wx");
  await handle.writeFile(bytes);
  await handle.sync();
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
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
    hint: "The store was changed from outside. Keeping the same artifact again mends it.",
  });
}
