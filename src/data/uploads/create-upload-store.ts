import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { mkdir, open, realpath, rename, rm } from "node:fs/promises";
import path from "node:path";
import { SluiceError, UsageError } from "../../errors/sluice-error.ts";
import type { EvidenceFormat } from "../../evidence/contract.ts";
import { defaultLimits } from "../../sandbox/limits.ts";
import type { NewUpload, OpenedUpload, StoredUpload, UploadStore } from "../contract.ts";
import { tableFileEndings } from "../../protocol/data-files.ts";
import { formatOf, toPlainName } from "../data-formats.ts";
import { createFileContent } from "../files/create-file-content.ts";
import { createContentCheck } from "./create-content-check.ts";

export interface UploadStoreOptions {
  readonly directory: string;
  /** Of one upload: what a sandbox takes of inputs unless told. */
  readonly maxBytes?: number | undefined;
}

/** One file an upload, named by its hash, in a folder of its tenant. A file appears whole or not at all. */
export function createUploadStore({ directory, maxBytes = defaultLimits.inputBytes }: UploadStoreOptions): UploadStore {
  const folderOf = (tenant: string): string => path.join(directory, createHash("sha256").update(tenant).digest("hex").slice(0, 32));
  const fileOf = ({ tenant, sha256 }: Pick<StoredUpload, "tenant" | "sha256">): string =>
    path.join(folderOf(tenant), sha256.slice(0, 2), sha256);

  async function put({ tenant, fileName, content, signal }: NewUpload): Promise<OpenedUpload> {
    const name = toFileName(fileName);
    const format = acceptedFormat(name);
    const draft = path.join(folderOf(tenant), `${randomBytes(8).toString("hex")}.part`);
    try {
      await inStorage(directory, () => mkdir(folderOf(tenant), { recursive: true, mode: 0o700 }));
      const { sha256, bytes } = await receive({ draft, name, format, content, maxBytes, directory, signal });
      const stored = { tenant, sha256, bytes, fileName: name, format };
      await inStorage(directory, async () => {
        await mkdir(path.dirname(fileOf(stored)), { recursive: true, mode: 0o700 });
        await rename(draft, fileOf(stored));
      });
      return (await openUpload(stored))!;
    } finally {
      await rm(draft, { force: true }).catch(() => {}); // what is left of a draft is not worth an error of its own
    }
  }

  async function openUpload(stored: StoredUpload): Promise<OpenedUpload | null> {
    if (!/^[0-9a-f]{64}$/.test(stored.sha256)) return null;
    const real = await realpath(fileOf(stored), { encoding: "buffer" }).catch(() => null);
    if (real === null) return null;
    return { ...stored, content: createFileContent({ real, kind: "upload", format: stored.format, maxBytes, sha256: stored.sha256 }) };
  }

  return {
    put,
    open: openUpload,
    has: (upload) => existsSync(fileOf(upload)),
    remove: (upload) => rmSync(fileOf(upload), { force: true }),
    listOld: (tenant, olderThanMs) =>
      oldFilesIn(folderOf(tenant), /^[0-9a-f]{64}$/, olderThanMs)
        .map((file) => path.basename(file))
        .sort(),
    removeDrafts(olderThanMs) {
      const drafts = oldFilesIn(directory, /\.part$/, olderThanMs);
      for (const draft of drafts) rmSync(draft, { force: true });
      return drafts.length;
    },
  };
}

function oldFilesIn(folder: string, name: RegExp, olderThanMs: number): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => name.test(path.basename(file)))
    .map((file) => path.join(folder, file))
    .filter((file) => Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Infinity) > olderThanMs);
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

interface Receiving extends Pick<NewUpload, "content" | "signal"> {
  readonly draft: string;
  readonly name: string;
  readonly format: EvidenceFormat;
  readonly maxBytes: number;
  readonly directory: string;
}

async function receive({
  draft,
  name,
  format,
  content,
  maxBytes,
  directory,
  signal,
}: Receiving): Promise<{ sha256: string; bytes: number }> {
  await using handle = await inStorage(directory, () => open(draft, "wx", 0o600));
  const hash = createHash("sha256");
  const check = createContentCheck(format);
  let bytes = 0;
  for await (const chunk of content) {
    signal?.throwIfAborted();
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge(name, maxBytes);
    hash.update(chunk);
    check.update(chunk);
    await inStorage(directory, () => handle.writeFile(chunk));
  }
  signal?.throwIfAborted();
  const problem = bytes === 0 ? "it is empty" : check.problem();
  if (problem !== null) throw notAsNamed(name, problem);
  return { sha256: hash.digest("hex"), bytes };
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

/** What the disk refuses is said once, in our words. */
async function inStorage<Value>(directory: string, use: () => Promise<Value>): Promise<Value> {
  try {
    return await use();
  } catch (cause) {
    throw new SluiceError({
      code: "STORAGE_UNAVAILABLE",
      message: `The upload cannot be kept in ${directory}: ${cause instanceof Error ? cause.message : String(cause)}.`,
      hint: "Free space or choose another directory.",
      cause,
    });
  }
}
