import { createHash, randomBytes } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { SluiceError } from "../errors/sluice-error.ts";
import type { ArtifactStore } from "./contract.ts";

/** No write takes this long: an older draft is of a writer that was killed. */
const DRAFT_LIFETIME_MS = 10 * 60_000;

/** One file an artifact, `ab/abcd….png`. A file appears whole or not at all, whoever dies meanwhile; what a killed writer left in `drafts` goes with the first write of a later one. */
export function createFileStore({ directory }: { directory: string }): ArtifactStore {
  const drafts = path.join(directory, "drafts");
  let pruned: Promise<void> | null = null;
  const fileOf = (contentHash: string, type: string): string => path.join(directory, contentHash.slice(0, 2), `${contentHash}.${type}`);

  return {
    async put({ bytes, type }) {
      const contentHash = hashOf(bytes);
      const file = fileOf(contentHash, type);
      try {
        if (await holds(file, contentHash)) await touch(file);
        else {
          await (pruned ??= pruneDrafts(drafts));
          await writeOnce({ file, drafts, bytes, contentHash });
        }
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

/** Made again it is as good as new, to who goes by age. */
async function touch(file: string): Promise<void> {
  const now = new Date();
  await utimes(file, now, now).catch(() => {});
}

/** Best effort: a draft that cannot be removed is in nobody's way. */
async function pruneDrafts(drafts: string): Promise<void> {
  for (const name of await readdir(drafts).catch(() => [])) {
    const draft = path.join(drafts, name);
    const written = await stat(draft).catch(() => null);
    if (written !== null && Date.now() - written.mtimeMs > DRAFT_LIFETIME_MS) await rm(draft, { force: true }).catch(() => {});
  }
}

interface Content {
  readonly file: string;
  readonly drafts: string;
  readonly bytes: Uint8Array;
  readonly contentHash: string;
}

async function writeOnce({ file, drafts, bytes, contentHash }: Content): Promise<void> {
  await Promise.all([mkdir(path.dirname(file), { recursive: true }), mkdir(drafts, { recursive: true })]);
  const draft = path.join(drafts, `${contentHash}.${randomBytes(6).toString("hex")}.part`);
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
