import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { SluiceError } from "../../errors/sluice-error.ts";
import type { Dataset, DatasetIndex, DatasetReader, DatasetStore, StoredDataset } from "./contract.ts";
import { listTables, readEntry } from "./dataset-tables.ts";
import { writeDocument } from "./write-document.ts";

/** One file a dataset, `ab/abcd….json`, and beside it where things are in it. A file appears whole or not at all. */
export function createDatasetFileStore({ directory }: { directory: string }): DatasetStore {
  const fileOf = (hash: string, ending: string): string => path.join(directory, hash.slice(0, 2), `${hash}.${ending}`);

  async function put(dataset: Dataset): Promise<StoredDataset> {
    const draft = path.join(directory, `${randomBytes(8).toString("hex")}.part`);
    try {
      await mkdir(directory, { recursive: true });
      const { hash, index } = await writeDraft(draft, dataset);
      await mkdir(path.dirname(fileOf(hash, "json")), { recursive: true });
      await writeFile(`${draft}-index`, JSON.stringify(index));
      await rename(`${draft}-index`, fileOf(hash, "index.json")); // before the dataset: one that is there can be read
      await rename(draft, fileOf(hash, "json"));
      return { datasetId: toDatasetId(hash), hash, bytes: index.bytes, url: toUrl(fileOf(hash, "json")) };
    } catch (error) {
      throw unavailable(directory, error);
    } finally {
      await discard(draft, `${draft}-index`);
    }
  }

  async function openDataset(hash: string): Promise<DatasetReader | null> {
    if (!isHash(hash)) return null;
    const file = fileOf(hash, "json");
    const found = await stat(file).catch(() => null);
    if (found === null) return null;
    const index = JSON.parse(await readFile(fileOf(hash, "index.json"), "utf8")) as DatasetIndex;
    return {
      hash,
      bytes: found.size,
      url: toUrl(file),
      tables: listTables(index),
      stream: () => createReadStream(file),
      async readTable(name) {
        const entry = index.entries.find((one) => one.name === name);
        return entry === undefined ? null : readEntry(entry, await readRange(file, entry.offset, entry.length));
      },
    };
  }

  async function readDerived(hash: string, name: string): Promise<Uint8Array | null> {
    return isHash(hash) && isName(name) ? await readFile(fileOf(hash, name)).catch(() => null) : null;
  }

  async function keepDerived(hash: string, name: string, bytes: Uint8Array): Promise<void> {
    if (!isHash(hash) || !isName(name)) return;
    const draft = fileOf(hash, `${randomBytes(8).toString("hex")}.part`);
    try {
      await writeFile(draft, bytes);
      await rename(draft, fileOf(hash, name));
    } catch (error) {
      throw unavailable(directory, error);
    } finally {
      await discard(draft);
    }
  }

  return { put, open: openDataset, readDerived, keepDerived };
}

/** What is left of a draft is not worth an error of its own. */
async function discard(...drafts: string[]): Promise<void> {
  for (const draft of drafts) await rm(draft, { force: true }).catch(() => {});
}

function isHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** Aliases are Python names, so this leaves no way out of the directory, and never means the dataset or its index. */
function isName(text: string): boolean {
  return /^[A-Za-z_]\w*\.parquet$/.test(text);
}

export function toDatasetId(hash: string): string {
  return `ds_${hash.slice(0, 24)}`;
}

async function writeDraft(draft: string, dataset: Dataset): Promise<{ hash: string; index: DatasetIndex }> {
  await using handle = await open(draft, "wx");
  return await writeDocument(dataset, async (bytes) => {
    await handle.writeFile(bytes);
  });
}

async function readRange(file: string, offset: number, length: number): Promise<Uint8Array> {
  await using handle = await open(file, "r");
  const bytes = Buffer.alloc(length);
  await handle.read(bytes, 0, length, offset);
  return bytes;
}

function toUrl(file: string): string {
  return pathToFileURL(path.resolve(file)).href;
}

function unavailable(directory: string, cause: unknown): SluiceError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new SluiceError({
    code: "STORAGE_UNAVAILABLE",
    message: `The dataset cannot be kept in ${directory}: ${why}.`,
    hint: "Free space or choose another directory.",
    cause,
  });
}
