import { createHash, randomBytes } from "node:crypto";
import { createReadStream, existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { mkdir, open, readFile, rename, rm, utimes } from "node:fs/promises";
import path from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { SluiceError } from "../errors/sluice-error.ts";
import { isBlobName, isDraftName, type BlobFacts, type BlobStore, type NewBlob, type StoredBlob } from "./blob-store.ts";
import { removeOldDrafts } from "./delete-blobs.ts";

export interface FileBlobsOptions {
  readonly directory: string;
  /** The subject of the sentence "… cannot be kept in DIRECTORY". */
  readonly subject: string;
  /** Readable by its owner alone. */
  readonly isPrivate?: boolean;
}

/** No write takes this long: an older draft is of a writer that was killed. */
const DRAFT_LIFETIME_MS = 30 * 60_000;
const CHUNK_BYTES = 1 << 20;

/** One file a blob, `ab/abcd….png`. A file appears whole or not at all; what a killed writer left in `drafts` goes with the first write of a later one. */
export function createFileBlobs({ directory, subject, isPrivate = false }: FileBlobsOptions): BlobStore {
  const drafts = path.join(directory, "drafts");
  const fileOf = (name: string): string => {
    if (!isBlobName(name)) throw missing(name); // a name with a path in it must not lead out of the directory
    return path.join(directory, name.slice(0, 2), name);
  };
  const makeDirectory = (place: string): Promise<unknown> => mkdir(place, { recursive: true, ...(isPrivate && { mode: 0o700 }) });
  let isSwept = false;

  async function put({ content, hash, ending = "" }: NewBlob): Promise<StoredBlob> {
    if (content instanceof Uint8Array) {
      const known = hash ?? (await hashBytes(content));
      if (await isWhole(fileOf(`${known}${ending}`), known)) {
        await touch(fileOf(`${known}${ending}`));
        return { name: `${known}${ending}`, hash: known, bytes: content.length };
      }
    }
    const draft = path.join(drafts, `${randomBytes(8).toString("hex")}.part`);
    try {
      await inStorage(() => makeDirectory(drafts));
      if (!isSwept) removeOldDrafts(store, DRAFT_LIFETIME_MS, "drafts");
      isSwept = true;
      const written = await write(draft, content);
      const named = hash ?? written.hash;
      const file = fileOf(`${named}${ending}`);
      await inStorage(async () => {
        await makeDirectory(path.dirname(file));
        await rename(draft, file); // over the same bytes, or over damaged ones
      });
      return { name: `${named}${ending}`, hash: named, bytes: written.bytes };
    } finally {
      await rm(draft, { force: true }).catch(() => {}); // what is left of a draft is not worth an error of its own
    }
  }

  /** On the disk before it gets its name: a machine that loses power leaves no empty blob. */
  async function write(draft: string, content: NewBlob["content"]): Promise<{ hash: string; bytes: number }> {
    await using handle = await inStorage(() => open(draft, "wx", isPrivate ? 0o600 : 0o666));
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const chunk of content instanceof Uint8Array ? inChunks(content) : content) {
      bytes += chunk.length;
      hash.update(chunk);
      await inStorage(() => handle.writeFile(chunk));
    }
    await inStorage(() => handle.sync());
    return { hash: hash.digest("hex"), bytes };
  }

  async function get(name: string): Promise<Uint8Array | null> {
    if (!isBlobName(name)) return null;
    const bytes = await readFile(fileOf(name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw unavailable(error);
    });
    if (bytes !== null && createHash("sha256").update(bytes).digest("hex") !== name.slice(0, 64)) throw damaged(name.slice(0, 64));
    return bytes;
  }

  function list(prefix = ""): BlobFacts[] {
    const folders = prefix === "" ? namesIn(directory) : [prefix === "drafts" ? prefix : prefix.slice(0, 2)];
    const files = folders.flatMap((folder) => {
      if (isDraftName(folder)) return [folder];
      const isFolder = folder === "drafts" || /^[0-9a-f]{2}$/.test(folder);
      return isFolder ? namesIn(path.join(directory, folder)).map((name) => path.join(folder, name)) : [];
    });
    return files.flatMap((file) => {
      const name = isDraftName(file) ? file : path.basename(file);
      const isOurs = isDraftName(file) || (isBlobName(name) && name.startsWith(path.dirname(file)));
      if (!isOurs || !name.startsWith(prefix)) return [];
      const found = statSync(path.join(directory, file), { throwIfNoEntry: false });
      return found?.isFile() ? [{ name, bytes: found.size, modifiedAt: found.mtime, isDraft: isDraftName(file) }] : [];
    });
  }

  async function inStorage<Value>(use: () => Promise<Value>): Promise<Value> {
    try {
      return await use();
    } catch (cause) {
      throw unavailable(cause);
    }
  }

  function unavailable(cause: unknown): SluiceError {
    return new SluiceError({
      code: "STORAGE_UNAVAILABLE",
      message: `${subject} cannot be kept in ${directory}: ${cause instanceof Error ? cause.message : String(cause)}.`,
      hint: "Free space or choose another directory.",
      cause,
    });
  }

  const store: BlobStore = {
    put,
    get,
    read(name) {
      try {
        return readFileSync(fileOf(name));
      } catch (error) {
        throw missing(name, error);
      }
    },
    async *stream(name, range) {
      const part = range && { start: range.offset, end: range.offset + range.length - 1 };
      if (range?.length === 0) return;
      try {
        yield* readPieces(fileOf(name), part);
      } catch (error) {
        throw missing(name, error);
      }
    },
    has: (name) => isBlobName(name) && existsSync(fileOf(name)),
    delete: (name) => rmSync(isDraftName(name) ? path.join(directory, name) : fileOf(name), { force: true }),
    list,
    url: (name) => pathToFileURL(path.resolve(fileOf(name))).href,
  };
  return store;
}

/** The sha256 of bytes, a piece in each turn of the event loop: they may be many. */
export async function hashBytes(bytes: Uint8Array): Promise<string> {
  const hash = createHash("sha256");
  for (const chunk of inChunks(bytes)) {
    hash.update(chunk);
    if (bytes.length > CHUNK_BYTES) await nextTurn();
  }
  return hash.digest("hex");
}

/** Bytes in pieces of at most 1 MiB. */
function* inChunks(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES);
}

/** Read a piece at a time: the file may be large. One that cannot be read, or is deleted meanwhile, is not whole. */
async function isWhole(file: string, hash: string): Promise<boolean> {
  const found = createHash("sha256");
  try {
    for await (const chunk of readPieces(file)) found.update(chunk);
  } catch {
    return false;
  }
  return found.digest("hex") === hash;
}

/** Reads a file in pieces of at most 1 MiB. The stream allocates a whole piece for each read, so a small file gets a small piece. */
function readPieces(file: string, part: { start?: number; end?: number } = {}): AsyncIterable<Uint8Array> {
  return createReadStream(file, { ...part, highWaterMark: Math.min(CHUNK_BYTES, statSync(file).size + 1) });
}

/** Retention goes by age, and what was kept again is new. */
async function touch(file: string): Promise<void> {
  const now = new Date();
  await utimes(file, now, now).catch(() => {});
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

export function damaged(hash: string): SluiceError {
  return new SluiceError({ code: "ARTIFACT_DAMAGED", message: `The artifact ${hash} is not what its name says.` });
}

export function missing(name: string, cause?: unknown): SluiceError {
  return new SluiceError({
    code: "EVIDENCE_MISSING",
    message: `The bytes of an earlier output (${name.slice(0, 12)}…) are not there any more.`,
    cause,
  });
}
