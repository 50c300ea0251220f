import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { BlobStore } from "../blobs/blob-store.ts";
import { createFileBlobs } from "../blobs/create-file-blobs.ts";
import { UsageError } from "../errors/sluice-error.ts";
import type { EvidenceFormat } from "../evidence/evidence-store.ts";
import { defaultLimits } from "../sandbox/limits.ts";
import type { NewUpload, OpenedUpload, StoredUpload, UploadStore } from "./conversation-data.ts";
import { tableFileEndings } from "../protocol/data-files.ts";
import { formatOf, toPlainName } from "./data-formats.ts";
import { createFileContent } from "./create-file-content.ts";

export interface UploadStoreOptions {
  readonly directory: string;
  /** Of one upload: what a sandbox takes of inputs unless told. */
  readonly maxBytes?: number | undefined;
}

/** Uploads in a blob store for each tenant. */
export function createUploadStore({ directory, maxBytes = defaultLimits.inputBytes }: UploadStoreOptions): UploadStore {
  const stores = new Map<string, BlobStore>();
  const blobsOf = (tenant: string): BlobStore => {
    const place = path.join(directory, createHash("sha256").update(tenant).digest("hex").slice(0, 32));
    const store = stores.get(tenant) ?? createFileBlobs({ directory: place, subject: "The upload", isPrivate: true });
    stores.set(tenant, store);
    return store;
  };

  async function openUpload(stored: StoredUpload): Promise<OpenedUpload | null> {
    const { tenant, sha256, format } = stored;
    const blobs = blobsOf(tenant);
    if (!blobs.has(sha256)) return null;
    const real = await realpath(fileURLToPath(blobs.url(sha256)), { encoding: "buffer" });
    return { ...stored, content: createFileContent({ real, kind: "upload", format, maxBytes, sha256 }) };
  }

  return {
    async put({ tenant, fileName, content, signal }) {
      const name = toFileName(fileName);
      const format = acceptedFormat(name);
      const { hash: sha256, bytes } = await blobsOf(tenant).put({ content: check({ name, format, content, maxBytes, signal }) });
      return (await openUpload({ tenant, sha256, bytes, fileName: name, format }))!;
    },
    open: openUpload,
    blobsOf,
  };
}

/** The last part of what the sender calls it; both kinds of separators count. */
function toFileName(fileName: string): string {
  return toPlainName(fileName.toWellFormed().split(/[/\\]/).at(-1) ?? "");
}

function acceptedFormat(name: string): EvidenceFormat {
  const format = tableFileEndings.includes(path.extname(name).toLowerCase()) ? formatOf(name) : null;
  if (format !== null) return format;
  throw new UsageError({
    code: "UPLOAD_TYPE_UNKNOWN",
    message: `The file ${JSON.stringify(name)} is none that can be taken as data.`,
    hint: `Files that end in ${tableFileEndings.join(", ")} can be.`,
  });
}

interface Checked extends Pick<NewUpload, "content" | "signal"> {
  readonly name: string;
  readonly format: EvidenceFormat;
  readonly maxBytes: number;
}

const LOOKED_AT = 4096;

/** Passes the bytes on. Throws when they are too many, or cannot be what their name says; nothing is parsed. */
async function* check({ name, format, content, maxBytes, signal }: Checked): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  for await (const chunk of content) {
    signal?.throwIfAborted();
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge(name, maxBytes);
    if (head.length < LOOKED_AT) head = Buffer.concat([head, chunk.subarray(0, LOOKED_AT - head.length)]);
    tail = Buffer.concat([tail, chunk.subarray(-4)]).subarray(-4);
    yield chunk;
  }
  signal?.throwIfAborted();
  const problem = bytes === 0 ? "it is empty" : findProblem(format, head, tail);
  if (problem !== null) throw notAsNamed(name, problem);
}

/** The rest of a sentence, or null when nothing speaks against it. */
function findProblem(format: EvidenceFormat, head: Buffer, tail: Buffer): string | null {
  if (format === "parquet") {
    const isWhole = head.subarray(0, 4).toString("latin1") === "PAR1" && tail.toString("latin1") === "PAR1";
    return isWhole ? null : "it is no whole Parquet file: the marks at its beginning and end are missing";
  }
  if (format === "xlsx") return head.subarray(0, 2).toString("latin1") === "PK" ? null : "it is no Excel workbook (.xlsx)";
  return head.includes(0) ? "it is no text in UTF-8: it has zero bytes, as binary files and UTF-16 have" : null;
}

function tooLarge(name: string, allowed: number): UsageError {
  return new UsageError({
    code: "UPLOAD_TOO_LARGE",
    message: `The file ${JSON.stringify(name)} has more than ${allowed} bytes, which is the most that is taken.`,
    hint: "Give the table as Parquet, which is smaller, or raise the limit of uploads and limits.sandbox.inputBytes.",
    details: { allowed },
  });
}

function notAsNamed(name: string, problem: string): UsageError {
  return new UsageError({
    code: "UPLOAD_NOT_AS_NAMED",
    message: `The file ${JSON.stringify(name)} was not taken: ${problem}.`,
    hint: "Save it in the format that its name says.",
  });
}
