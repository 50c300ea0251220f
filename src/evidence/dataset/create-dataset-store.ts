import { createHash, type Hash } from "node:crypto";
import { z } from "zod";
import type { BlobStore } from "../../blobs/blob-store.ts";
import { createFileBlobs } from "../../blobs/create-file-blobs.ts";
import { createMemoryBlobs } from "../../blobs/create-memory-blobs.ts";
import { deleteBlobs } from "../../blobs/delete-blobs.ts";
import { parseJson } from "../../text/json.ts";
import { evidenceRecordSchema } from "../evidence-record.ts";
import { hasRows, type BodyEncoding, type Dataset, type DatasetReader, type DatasetStore, type StoredDataset } from "./dataset.ts";
import { encodeBody, encodePiece, inBatches, toDocumentParts, type DocumentBody, type DocumentPiece } from "./dataset-document.ts";

export interface DatasetStoreOptions {
  /** Store of the manifests, named `<sha256 of the document>.json`. */
  readonly manifests: BlobStore;
  /** Store of the outputs, named `<sha256>`. */
  readonly bodies: Pick<BlobStore, "put" | "stream">;
  readonly toUrl?: (hash: string) => string;
  /** Called before an output is stored, so that the caller can record the reference first. */
  readonly onBody?: (sha256: string) => void;
}

const { sha256, bytes, format, shape, reader } = evidenceRecordSchema.shape;
const encoding = z.enum(["json", "text", "base64"]) satisfies z.ZodType<BodyEncoding>;
const { path, rows, kind } = shape.shape;
const manifestSchema = z.object({
  schemaVersion: z.literal(2),
  /** Size of the document. */
  bytes,
  /** The document in order: text as it is, and references to bodies. */
  pieces: z.array(z.union([z.string(), z.object({ sha256, encoding })])),
  tables: z.array(z.object({ name: z.string(), format, path, rows, sha256, reader })),
});

type Manifest = z.infer<typeof manifestSchema>;

export function createDatasetFileStore({ directory }: { directory: string }): DatasetStore {
  const blobs = createFileBlobs({ directory, subject: "The dataset" });
  return createDatasetStore({ manifests: blobs, bodies: blobs });
}

/** For tests, and for callers that read the dataset right away. */
export function createDatasetMemoryStore(): DatasetStore {
  const blobs = createMemoryBlobs("datasets");
  return createDatasetStore({ manifests: blobs, bodies: blobs });
}

export function createDatasetStore(options: DatasetStoreOptions): DatasetStore {
  const { manifests, bodies, toUrl = (hash) => manifests.url(toName(hash)) } = options;

  async function put(dataset: Dataset): Promise<StoredDataset> {
    const { hash, manifest } = await putBodies(dataset, options);
    await removeDamagedDocument(manifests, hash);
    await manifests.put({ content: Buffer.from(JSON.stringify(manifest)), hash, extension: ".json" });
    return { datasetId: `ds_${hash.slice(0, 24)}`, hash, bytes: manifest.bytes, url: toUrl(hash) };
  }

  async function open(hash: string): Promise<DatasetReader | null> {
    if (!manifests.has(toName(hash))) return null;
    const wholeDocument = openWholeDocument(manifests, hash);
    if (wholeDocument !== null) return { hash, url: toUrl(hash), ...wholeDocument };
    const { bytes, pieces, tables } = manifestSchema.parse(parseJson(manifests.read(toName(hash))));
    return {
      hash,
      bytes,
      url: toUrl(hash),
      tables: tables.map(({ name, format, path, rows, reader }) => ({ name, format, path, rows, reader })),
      stream: () => streamDocument(pieces),
      async readTable(name) {
        const found = tables.find((table) => table.name === name);
        return found === undefined ? null : await readAll(bodies.stream(found.sha256));
      },
    };
  }

  async function* streamDocument(pieces: Manifest["pieces"]): AsyncGenerator<Uint8Array> {
    for (const piece of pieces) {
      if (typeof piece === "string") yield Buffer.from(piece);
      else yield* encodeBody(bodies.stream(piece.sha256), piece.encoding);
    }
  }

  return { put, open };
}

/** Stores the outputs of a dataset, a batch at a time, and returns its manifest and the hash of its document. */
async function putBodies(
  dataset: Dataset,
  { bodies, onBody = () => {} }: DatasetStoreOptions,
): Promise<{ hash: string; manifest: Manifest }> {
  const documentHash = createHash("sha256");
  const manifest: Manifest = { schemaVersion: 2, bytes: 0, pieces: [], tables: [] };
  const putBody = async ({ sha256, content }: DocumentBody): Promise<void> => {
    onBody(sha256);
    await bodies.put({ content, hash: sha256 });
  };
  const addToHash = async (pieces: readonly DocumentPiece[]): Promise<void> => {
    manifest.bytes += await hashPieces(documentHash, pieces);
  };
  for (const batch of inBatches(toDocumentParts(dataset))) {
    const parts = [];
    for (const part of batch) parts.push(await part.read()); // one after the other: reading computes, and lets the event loop run in between
    const pieces = parts.flatMap((part) => part.pieces);
    const settled = await Promise.allSettled([addToHash(pieces), ...pieces.filter((piece) => typeof piece !== "string").map(putBody)]);
    for (const result of settled) if (result.status === "rejected") throw result.reason; // only after all writes have ended
    manifest.pieces.push(
      ...pieces.map((piece) => (typeof piece === "string" ? piece : { sha256: piece.sha256, encoding: piece.encoding })),
    );
    manifest.tables.push(...parts.flatMap(({ table }) => (table === undefined ? [] : [{ ...table, path: [...table.path] }])));
  }
  return { hash: documentHash.digest("hex"), manifest };
}

/** Adds the pieces to the hash and returns their size. */
async function hashPieces(hash: Hash, pieces: readonly DocumentPiece[]): Promise<number> {
  let bytes = 0;
  for (const piece of pieces) {
    for await (const chunk of encodePiece(piece)) {
      hash.update(chunk);
      bytes += chunk.length;
    }
  }
  return bytes;
}

function toName(hash: string): string {
  return `${hash}.json`;
}

function toIndexName(hash: string): string {
  return `${hash}.index.json`;
}

/** When each output was last used: the modification time of the newest manifest that refers to it. Skips manifests that are deleted meanwhile. */
export async function readLastUses(blobs: BlobStore): Promise<Map<string, Date>> {
  const usedAt = new Map<string, Date>();
  for (const { name, modifiedAt } of blobs.list()) {
    if (name !== toName(name.slice(0, 64))) continue;
    const bodies = await readReferences(blobs, name).catch(() => []);
    for (const sha256 of bodies) if ((usedAt.get(sha256) ?? modifiedAt) <= modifiedAt) usedAt.set(sha256, modifiedAt);
  }
  return usedAt;
}

/** Every manifest starts with this. Documents of version 0.1.0, which may be large, have the same names but start differently. */
const MANIFEST_START = '{"schemaVersion":2,';

/** Hashes of the outputs that a manifest refers to; none if the file is not a manifest. */
async function readReferences(blobs: BlobStore, name: string): Promise<string[]> {
  const start = await readAll(blobs.stream(name, { offset: 0, length: MANIFEST_START.length }));
  if (start.toString() !== MANIFEST_START) return [];
  const { pieces } = manifestSchema.parse(parseJson(await readAll(blobs.stream(name))));
  return pieces.flatMap((piece) => (typeof piece === "string" ? [] : [piece.sha256]));
}

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(chunks));
}

/** Version 0.1.0 stored the whole document, and beside it this index with the place of each body. */
const indexSchema = z.object({
  bytes,
  entries: z.array(
    z.object({ name: z.string(), format, shape: z.object({ kind, rows, path }), encoding, offset: z.int(), length: z.int() }),
  ),
});

/** Deletes a damaged document of version 0.1.0 with its index before a manifest takes its name. */
async function removeDamagedDocument(blobs: BlobStore, hash: string): Promise<void> {
  if (!blobs.has(toIndexName(hash))) return;
  const document = await blobs.get(toName(hash)).catch(() => null);
  if (document === null) deleteBlobs(blobs, [hash]);
}

/** Opens a dataset that version 0.1.0 wrote; null if there is no index. */
function openWholeDocument(blobs: BlobStore, hash: string): Omit<DatasetReader, "hash" | "url"> | null {
  if (!blobs.has(toIndexName(hash))) return null;
  const { bytes, entries } = indexSchema.parse(parseJson(blobs.read(toIndexName(hash))));
  return {
    bytes,
    tables: entries.filter(hasRows).map(({ name, format, shape: { path, rows } }) => ({ name, format, path, rows })),
    stream: () => blobs.stream(toName(hash)),
    async readTable(name) {
      const entry = entries.find((one) => one.name === name);
      if (entry === undefined) return null;
      const body = await readAll(blobs.stream(toName(hash), entry));
      if (entry.encoding === "json") return body;
      return Buffer.from(JSON.parse(body.toString()) as string, entry.encoding === "base64" ? "base64" : "utf8");
    },
  };
}
