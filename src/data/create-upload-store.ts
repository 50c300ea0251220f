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
import { refuseReaderOptions } from "./reader-options.ts";
import { createFileContent } from "./create-file-content.ts";

export interface UploadStoreOptions {
  readonly directory: string;
  /** Largest upload. Default: the input limit of a sandbox. */
  readonly maxBytes?: number | undefined;
}

/** Creates an upload store in a directory, with one blob store per tenant. */
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
    async put({ tenant, fileName, content, reader, signal }) {
      const name = toFileName(fileName);
      const format = acceptedFormat(name);
      refuseReaderOptions(name, format, reader);
      const { hash: sha256, bytes } = await blobsOf(tenant).put({ content: checkContent({ name, format, content, maxBytes, signal }) });
      return (await openUpload({ tenant, sha256, bytes, fileName: name, format, reader }))!;
    },
    open: openUpload,
    blobsOf,
  };
}

/** Returns the last part of the name that the client sent, with / or \\ as separator. */
function toFileName(fileName: string): string {
  return toPlainName(fileName.toWellFormed().split(/[/\\]/).at(-1) ?? "");
}

function acceptedFormat(name: string): EvidenceFormat {
  const format = tableFileEndings.includes(path.extname(name).toLowerCase()) ? formatOf(name) : null;
  if (format !== null) return format;
  throw new UsageError({
    code: "UPLOAD_TYPE_UNKNOWN",
    message: `The file ${JSON.stringify(name)} has no supported extension.`,
    hint: `Supported extensions: ${tableFileEndings.join(", ")}.`,
  });
}

interface CheckedUpload extends Pick<NewUpload, "content" | "signal"> {
  readonly name: string;
  readonly format: EvidenceFormat;
  readonly maxBytes: number;
}

const HEAD_BYTES = 4096;

/** Passes the bytes on. Throws if there are too many, or if they cannot be the format that the name says. Parses nothing. */
async function* checkContent({ name, format, content, maxBytes, signal }: CheckedUpload): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  for await (const chunk of content) {
    signal?.throwIfAborted();
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge(name, maxBytes);
    if (head.length < HEAD_BYTES) head = Buffer.concat([head, chunk.subarray(0, HEAD_BYTES - head.length)]);
    tail = Buffer.concat([tail, chunk.subarray(-4)]).subarray(-4);
    yield chunk;
  }
  signal?.throwIfAborted();
  const problem = bytes === 0 ? "the file is empty" : findProblem(format, head, tail);
  if (problem !== null) throw notAsNamed(name, problem);
}

/** Returns what is wrong with the content, or null. */
function findProblem(format: EvidenceFormat, head: Buffer, tail: Buffer): string | null {
  if (format === "parquet") {
    const hasMagic = head.subarray(0, 4).toString("latin1") === "PAR1" && tail.toString("latin1") === "PAR1";
    return hasMagic ? null : "it is not a complete Parquet file: PAR1 is missing at the start or the end";
  }
  if (format === "xlsx") return head.subarray(0, 2).toString("latin1") === "PK" ? null : "it is not an Excel workbook (.xlsx)";
  if (format === "csv" || format === "tsv") return null; // they may be UTF-16; the sandbox recognizes it
  return head.includes(0) ? "it is not UTF-8 text: it contains zero bytes, like binary files and UTF-16" : null;
}

function tooLarge(name: string, allowed: number): UsageError {
  return new UsageError({
    code: "UPLOAD_TOO_LARGE",
    message: `The file ${JSON.stringify(name)} is larger than the upload limit of ${allowed} bytes.`,
    hint: "Convert the table to Parquet, which is smaller, or raise server.uploadBytes and limits.sandbox.inputBytes.",
    details: { allowed },
  });
}

function notAsNamed(name: string, problem: string): UsageError {
  return new UsageError({
    code: "UPLOAD_NOT_AS_NAMED",
    message: `The file ${JSON.stringify(name)} was refused: ${problem}.`,
    hint: "Save the file in the format of its extension.",
  });
}
