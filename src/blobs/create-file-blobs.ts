import { createHash, randomBytes } from "node:crypto";
import { createReadStream, existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { mkdir, open, readFile, rename, rm, utimes } from "node:fs/promises";
import path from "node:path";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { createLimiter } from "../concurrency/create-limiter.ts";
import { SluiceError } from "../errors/sluice-error.ts";
import { isBlobName, isDraftName, type BlobFacts, type BlobStore, type NewBlob, type StoredBlob } from "./blob-store.ts";
import { removeOldDrafts } from "./delete-blobs.ts";

export interface FileBlobsOptions {
  readonly directory: string;
  /** Subject of the error message "… cannot be stored in DIRECTORY". */
  readonly subject: string;
  /** Whether only the owner may read the files. */
  readonly isPrivate?: boolean;
}

/** Drafts older than this belong to a writer that was killed: no write takes this long. */
const DRAFT_LIFETIME_MS = 30 * 60_000;
const CHUNK_BYTES = 1 << 20;
/**
 * Writes at the same time, a chunk each, of all stores. Tenants take turns, so that many or large files of one delay another by a chunk. Two, because
 * Node.js has four threads for files, and reading needs some.
 */
const writes = createLimiter({ places: 2 });

/**
 * Stores each blob in one file, `ab/abcd….png`. A file is written to `drafts` first and then renamed, so it appears complete or not at all. The first
 * write of each store removes old drafts.
 */
export function createFileBlobs(options: FileBlobsOptions): BlobStore {
  return new FileBlobs(options);
}

class FileBlobs implements BlobStore {
  readonly #options: FileBlobsOptions;
  readonly #drafts: string;
  #hasRemovedOldDrafts = false;

  constructor(options: FileBlobsOptions) {
    this.#options = options;
    this.#drafts = path.join(options.directory, "drafts");
  }

  async put({ content, hash, extension = "" }: NewBlob): Promise<StoredBlob> {
    if (content instanceof Uint8Array) {
      const contentHash = hash ?? (await hashBytes(content));
      const name = `${contentHash}${extension}`;
      if (await isIntact(this.#toFile(name), contentHash)) {
        await touch(this.#toFile(name));
        return { name, hash: contentHash, bytes: content.length };
      }
    }
    const draft = path.join(this.#drafts, `${randomBytes(8).toString("hex")}.part`);
    try {
      await this.#makeDirectory(this.#drafts);
      if (!this.#hasRemovedOldDrafts) removeOldDrafts(this, DRAFT_LIFETIME_MS, "drafts");
      this.#hasRemovedOldDrafts = true;
      const written = await this.#writeDraft(draft, content);
      const contentHash = hash ?? written.hash;
      const name = `${contentHash}${extension}`;
      await this.#makeDirectory(path.dirname(this.#toFile(name)));
      await this.#translateErrors(() => rename(draft, this.#toFile(name))); // replaces the same bytes, or damaged ones
      return { name, hash: contentHash, bytes: written.bytes };
    } finally {
      await rm(draft, { force: true }).catch(() => {}); // a leftover draft is removed later
    }
  }

  async get(name: string): Promise<Uint8Array | null> {
    if (!isBlobName(name)) return null;
    const bytes = await readFile(this.#toFile(name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw this.#unavailable(error);
    });
    if (bytes !== null && (await hashBytes(bytes)) !== name.slice(0, 64)) throw damagedBlob(name);
    return bytes;
  }

  read(name: string): Uint8Array {
    try {
      return readFileSync(this.#toFile(name));
    } catch (error) {
      throw missingBlob(name, error);
    }
  }

  async *stream(name: string, range?: { readonly offset: number; readonly length: number }): AsyncIterable<Uint8Array> {
    if (range?.length === 0) return;
    try {
      yield* readChunks(this.#toFile(name), range && { start: range.offset, end: range.offset + range.length - 1 });
    } catch (error) {
      throw missingBlob(name, error);
    }
  }

  has(name: string): boolean {
    return isBlobName(name) && existsSync(this.#toFile(name));
  }

  delete(name: string): void {
    rmSync(isDraftName(name) ? path.join(this.#options.directory, name) : this.#toFile(name), { force: true });
  }

  list(prefix = ""): BlobFacts[] {
    const { directory } = this.#options;
    const folders = prefix === "" ? namesIn(directory) : [prefix === "drafts" ? prefix : prefix.slice(0, 2)];
    const files = folders.flatMap((folder) => {
      if (isDraftName(folder)) return [folder];
      const isOurs = folder === "drafts" || /^[0-9a-f]{2}$/.test(folder);
      return isOurs ? namesIn(path.join(directory, folder)).map((name) => path.join(folder, name)) : [];
    });
    return files.flatMap((file) => {
      const isDraft = isDraftName(file);
      const name = isDraft ? file : path.basename(file);
      const isOurs = isDraft || (isBlobName(name) && name.startsWith(path.dirname(file)));
      if (!isOurs || !name.startsWith(prefix)) return [];
      const facts = statSync(path.join(directory, file), { throwIfNoEntry: false });
      return facts?.isFile() ? [{ name, bytes: facts.size, modifiedAt: facts.mtime, isDraft }] : [];
    });
  }

  url(name: string): string {
    return pathToFileURL(path.resolve(this.#toFile(name))).href;
  }

  /** Throws EVIDENCE_MISSING for a name that could lead out of the directory. */
  #toFile(name: string): string {
    if (!isBlobName(name)) throw missingBlob(name);
    return path.join(this.#options.directory, name.slice(0, 2), name);
  }

  async #makeDirectory(directory: string): Promise<void> {
    const mode = this.#options.isPrivate ? { mode: 0o700 } : {};
    await this.#translateErrors(() => mkdir(directory, { recursive: true, ...mode }));
  }

  /** Syncs the draft to disk before it gets its name, so that a power failure leaves no empty blob. */
  async #writeDraft(draft: string, content: NewBlob["content"]): Promise<{ hash: string; bytes: number }> {
    await using handle = await this.#translateErrors(() => open(draft, "wx", this.#options.isPrivate ? 0o600 : 0o666));
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const chunk of content instanceof Uint8Array ? [content] : content) {
      for (const piece of toChunks(chunk)) {
        bytes += piece.length;
        hash.update(piece);
        await writes.run(() => this.#translateErrors(() => handle.writeFile(piece)));
      }
    }
    await writes.run(() => this.#translateErrors(() => handle.sync()));
    return { hash: hash.digest("hex"), bytes };
  }

  /** Turns errors of the file system into STORAGE_UNAVAILABLE. Errors of the content stream pass through unchanged. */
  async #translateErrors<Value>(useStorage: () => Promise<Value>): Promise<Value> {
    try {
      return await useStorage();
    } catch (cause) {
      throw this.#unavailable(cause);
    }
  }

  #unavailable(cause: unknown): SluiceError {
    const { subject, directory } = this.#options;
    return new SluiceError({
      code: "STORAGE_UNAVAILABLE",
      message: `${subject} cannot be stored in ${directory}: ${cause instanceof Error ? cause.message : String(cause)}.`,
      hint: "Free space or choose another directory.",
      cause,
    });
  }
}

/** Computes the sha256 in chunks and yields to the event loop between them, so that large content does not block it. */
export async function hashBytes(bytes: Uint8Array): Promise<string> {
  const hash = createHash("sha256");
  for (const chunk of toChunks(bytes)) {
    hash.update(chunk);
    if (bytes.length > CHUNK_BYTES) await yieldToEventLoop();
  }
  return hash.digest("hex");
}

function* toChunks(bytes: Uint8Array): Generator<Uint8Array> {
  for (let offset = 0; offset < bytes.length; offset += CHUNK_BYTES) yield bytes.subarray(offset, offset + CHUNK_BYTES);
}

/** Whether the file exists, can be read and has this sha256. */
async function isIntact(file: string, expectedHash: string): Promise<boolean> {
  const hash = createHash("sha256");
  try {
    for await (const chunk of readChunks(file)) hash.update(chunk);
  } catch {
    return false;
  }
  return hash.digest("hex") === expectedHash;
}

/** Reads a file in chunks of at most 1 MiB. The stream allocates a full chunk for each read, so small files get a smaller chunk size. */
function readChunks(file: string, range: { start?: number; end?: number } = {}): AsyncIterable<Uint8Array> {
  return createReadStream(file, { ...range, highWaterMark: Math.min(CHUNK_BYTES, statSync(file).size + 1) });
}

/** Refreshes the mtime so that retention treats the blob as new. */
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

export function damagedBlob(name: string): SluiceError {
  const message = `The artifact ${name.slice(0, 64)} is damaged: its content does not match its hash.`;
  return new SluiceError({ code: "ARTIFACT_DAMAGED", message });
}

export function missingBlob(name: string, cause?: unknown): SluiceError {
  const message = `The bytes of an earlier output (${name.slice(0, 12)}…) no longer exist.`;
  return new SluiceError({ code: "EVIDENCE_MISSING", message, cause });
}
