import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { SluiceError } from "../errors/sluice-error.ts";

/** Bytes of evidence, each a file named by its sha256. A file appears whole or not at all. */
export interface BlobStore {
  /** Whoever gives the hash vouches for it. */
  put(sha256: string, bytes: Uint8Array): Promise<void>;
  /** All at once, for who cannot wait. Throws EVIDENCE_MISSING. */
  read(sha256: string): Uint8Array;
}

export function createBlobStore({ directory }: { directory: string }): BlobStore {
  const fileOf = (sha256: string): string => path.join(directory, sha256.slice(0, 2), sha256);
  return {
    async put(sha256, bytes) {
      const file = fileOf(sha256);
      if ((await stat(file).catch(() => null))?.size === bytes.length) return;
      const draft = `${file}.${randomBytes(6).toString("hex")}.part`;
      try {
        await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
        await write(draft, bytes);
        await rename(draft, file);
      } catch (error) {
        await rm(draft, { force: true }).catch(() => {});
        throw unavailable(directory, error);
      }
    },
    read(sha256) {
      try {
        return readFileSync(fileOf(sha256));
      } catch (error) {
        throw missing(sha256, error);
      }
    },
  };
}

async function write(draft: string, bytes: Uint8Array): Promise<void> {
  await using handle = await open(draft, "wx", 0o600);
  await handle.writeFile(bytes);
}

function unavailable(directory: string, cause: unknown): SluiceError {
  return new SluiceError({
    code: "STORAGE_UNAVAILABLE",
    message: `Evidence cannot be kept in ${directory}: ${(cause as Error).message}.`,
    hint: "Free space or choose another directory.",
    cause,
  });
}

function missing(sha256: string, cause: unknown): SluiceError {
  return new SluiceError({
    code: "EVIDENCE_MISSING",
    message: `The bytes of an earlier output (${sha256.slice(0, 12)}…) are not there any more.`,
    hint: "Fetch the data again.",
    cause,
  });
}
