import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import type { BlobStore } from "../../blobs/blob-store.ts";
import { createFileBlobs, hashBytes } from "../../blobs/create-file-blobs.ts";
import { createMemoryBlobs } from "../../blobs/create-memory-blobs.ts";
import { deleteBlobs } from "../../blobs/delete-blobs.ts";
import { parseJson } from "../../text/json.ts";
import type { EvidenceItem } from "../evidence-store.ts";
import { evidenceRecordSchema } from "../evidence-record.ts";
import {
  hasRows,
  type BodyEncoding,
  type Dataset,
  type DatasetArtifact,
  type DatasetReader,
  type DatasetStore,
  type StoredDataset,
} from "./dataset.ts";

export interface DatasetStoreOptions {
  /** Manifests, as `<sha256 of the document>.json`. */
  readonly manifests: BlobStore;
  /** The outputs, as `<sha256>`. */
  readonly bodies: Pick<BlobStore, "put" | "stream">;
  readonly toUrl?: (hash: string) => string;
  /** Called before an output is kept, so that it is referred to from then on. */
  readonly onBody?: (sha256: string) => void;
}

const { sha256, bytes, format, shape } = evidenceRecordSchema.shape;
const encoding = z.enum(["json", "text", "base64"]) satisfies z.ZodType<BodyEncoding>;
const bodySchema = z.object({ sha256, encoding });
const { path, rows, kind } = shape.shape;
const manifestSchema = z.object({
  schemaVersion: z.literal(2),
  /** Of the document. */
  bytes,
  /** The document in order: text as it is, and bodies. */
  pieces: z.array(z.union([z.string(), bodySchema])),
  tables: z.array(z.object({ name: z.string(), format, path, rows, sha256 })),
});

type Body = z.infer<typeof bodySchema>;
type Manifest = z.infer<typeof manifestSchema>;

export function createDatasetFileStore({ directory }: { directory: string }): DatasetStore {
  const blobs = createFileBlobs({ directory, subject: "The dataset" });
  return createDatasetStore({ manifests: blobs, bodies: blobs });
}

/** For tests and for callers that take the dataset out at once. */
export function createDatasetMemoryStore(): DatasetStore {
  const blobs = createMemoryBlobs("datasets");
  return createDatasetStore({ manifests: blobs, bodies: blobs });
}

export function createDatasetStore(options: DatasetStoreOptions): DatasetStore {
  const { manifests, bodies, toUrl = (hash) => manifests.url(toName(hash)), onBody = () => {} } = options;

  async function put(dataset: Dataset): Promise<StoredDataset> {
    const document = createHash("sha256");
    let bytes = 0;
    const pieces: Manifest["pieces"] = [];
    const tables: Manifest["tables"] = [];
    const addToHash = async (made: readonly NewPiece[]): Promise<void> => {
      for (const piece of made)
        for await (const chunk of typeof piece === "string" ? [Buffer.from(piece)] : encodeBody(inTurns(piece.content), piece.encoding)) {
          document.update(chunk);
          bytes += chunk.length;
        }
    };
    const keep = async ({ sha256, content }: NewBody): Promise<void> => {
      onBody(sha256);
      await bodies.put({ content, hash: sha256 });
    };
    for (const batch of inBatches(toParts(dataset))) {
      const parts = await Promise.all(batch.map(({ make }) => make()));
      const made = parts.flatMap((part) => part.pieces);
      const kept = await Promise.allSettled([addToHash(made), ...made.filter((piece) => typeof piece !== "string").map(keep)]);
      for (const one of kept) if (one.status === "rejected") throw one.reason; // once nothing is being written any more
      pieces.push(...made.map((piece) => (typeof piece === "string" ? piece : { sha256: piece.sha256, encoding: piece.encoding })));
      tables.push(...parts.flatMap(({ table }) => table ?? []));
    }
    const hash = document.digest("hex");
    const manifest: Manifest = { schemaVersion: 2, bytes, pieces, tables };
    await removeDamagedDocument(manifests, hash);
    await manifests.put({ content: Buffer.from(JSON.stringify(manifest)), hash, extension: ".json" });
    return { datasetId: `ds_${hash.slice(0, 24)}`, hash, bytes, url: toUrl(hash) };
  }

  async function openDataset(hash: string): Promise<DatasetReader | null> {
    if (!manifests.has(toName(hash))) return null;
    const whole = await openWholeDocument(manifests, hash);
    if (whole !== null) return { hash, url: toUrl(hash), ...whole };
    const { bytes, pieces, tables } = manifestSchema.parse(parseJson(manifests.read(toName(hash))));
    return {
      hash,
      bytes,
      url: toUrl(hash),
      tables: tables.map(({ name, format, path, rows }) => ({ name, format, path, rows })),
      stream: () => compose(pieces),
      async readTable(name) {
        const found = tables.find((table) => table.name === name);
        return found === undefined ? null : await readAll(bodies.stream(found.sha256));
      },
    };
  }

  async function* compose(pieces: Manifest["pieces"]): AsyncGenerator<Uint8Array> {
    for (const piece of pieces) {
      if (typeof piece === "string") yield Buffer.from(piece);
      else yield* encodeBody(bodies.stream(piece.sha256), piece.encoding);
    }
  }

  return { put, open: openDataset };
}

function toName(hash: string): string {
  return `${hash}.json`;
}

function toIndexName(hash: string): string {
  return `${hash}.index.json`;
}

/** When each output was last used: the age of the youngest manifest that refers to it. What is deleted meanwhile is left out. */
export async function readUses(blobs: BlobStore): Promise<Map<string, Date>> {
  const usedAt = new Map<string, Date>();
  for (const { name, modifiedAt } of blobs.list()) {
    if (name !== toName(name.slice(0, 64))) continue;
    const bodies = await readBodies(blobs, name).catch(() => []);
    for (const sha256 of bodies) if ((usedAt.get(sha256) ?? modifiedAt) <= modifiedAt) usedAt.set(sha256, modifiedAt);
  }
  return usedAt;
}

/** How every manifest begins. Documents of version 0.1.0, which may be large, have the same names and begin otherwise. */
const MANIFEST_START = '{"schemaVersion":2,';

/** The outputs that a manifest refers to; none for what is no manifest. */
async function readBodies(blobs: BlobStore, name: string): Promise<string[]> {
  const start = await readAll(blobs.stream(name, { offset: 0, length: MANIFEST_START.length }));
  if (start.toString() !== MANIFEST_START) return [];
  const { pieces } = manifestSchema.parse(parseJson(await readAll(blobs.stream(name))));
  return pieces.flatMap((piece) => (typeof piece === "string" ? [] : [piece.sha256]));
}

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(chunks));
}

interface NewBody extends Body {
  readonly content: Uint8Array;
}

type NewPiece = string | NewBody;

/** Some of the document. */
interface Part {
  readonly pieces: readonly NewPiece[];
  readonly table?: Manifest["tables"][number] | undefined;
}

interface PartSource {
  /** Of the output in it. */
  readonly bytes: number;
  /** Reads the output. */
  make(): Promise<Part>;
}

function toParts({ facts, items, artifacts }: Dataset): PartSource[] {
  const comma = (index: number): string => (index === 0 ? "\n" : ",\n");
  const text = (piece: string): PartSource => ({ bytes: 0, make: async () => ({ pieces: [piece] }) });
  const charts = artifacts.filter(({ data }) => data !== undefined);
  return [
    text(`${open({ schemaVersion: 1, ...facts })},"outputs":[`),
    ...items.map((item, index) => ({ bytes: item.bytes, make: () => toOutput(item, comma(index)) })),
    text(`\n],"artifacts":[`),
    ...artifacts.map((artifact, index) => ({
      bytes: 0,
      make: () => toArtifact(artifact, comma(index), `chart_${charts.indexOf(artifact) + 1}`),
    })),
    text("\n]}\n"),
  ];
}

const BATCH_PARTS = 16;
const BATCH_BYTES = 16 << 20;

/** What is read and written at once: up to 16 small outputs, or a large one. */
function* inBatches(parts: readonly PartSource[]): Generator<PartSource[]> {
  let batch: PartSource[] = [];
  let total = 0;
  for (const part of parts) {
    if (batch.length === BATCH_PARTS || total + part.bytes > BATCH_BYTES) {
      yield batch;
      [batch, total] = [[], 0];
    }
    batch.push(part);
    total += part.bytes;
  }
  yield batch;
}

async function toOutput(item: EvidenceItem, before: string): Promise<Part> {
  const content = item.read();
  const sha256 = item.file === undefined ? item.sha256 : await hashBytes(content); // a file may change meanwhile
  const encoding = encodingOf(item, content);
  const { alias: name, format, shape } = item;
  return {
    pieces: [
      `${before}${open(describeItem(item))},"value":`,
      { sha256, encoding, content },
      `,"encoding":${JSON.stringify(encoding)},"sha256":"${sha256}"}`,
    ],
    table: hasRows(item) ? { name, format, path: shape.path, rows: shape.rows, sha256 } : undefined,
  };
}

async function toArtifact({ data, ...artifact }: DatasetArtifact, before: string, name: string): Promise<Part> {
  if (data === undefined) return { pieces: [`${before}${JSON.stringify(artifact)}`] };
  const content = Buffer.from(JSON.stringify(data));
  const sha256 = await hashBytes(content);
  return {
    pieces: [`${before}${open(artifact)},"data":`, { sha256, encoding: "json", content }, "}"],
    table: { name, format: "json", path: [], rows: data.length, sha256 },
  };
}

/** An object as JSON, without its end. */
function open(value: object): string {
  return JSON.stringify(value).slice(0, -1);
}

/** `undefined` members are left out of the document. */
function describeItem(item: EvidenceItem): object {
  const { alias, source, tool, at, bytes, format, mimeType, shape, precisionLoss, partOf } = item;
  return { alias, source, tool, arguments: item.arguments, at, bytes, format, mimeType, shape, precisionLoss, partOf };
}

const LARGE_FILE_BYTES = 16 << 20;

/** JSON that is not quite JSON (NaN, a byte order mark, a file that only says so) stands there as text. */
function encodingOf(item: EvidenceItem, bytes: Uint8Array): BodyEncoding {
  if (["bytes", "parquet", "xlsx"].includes(item.format)) return "base64";
  const isLargeFile = item.file !== undefined && bytes.length > LARGE_FILE_BYTES; // what is in it is not known, and parsing it takes too much
  return item.format === "json" && !isLargeFile && (!mayBeLenient(item, bytes) || isJson(bytes)) ? "json" : "text";
}

/** Parsing is not needed where nothing could be wrong: evidence was read as JSON when it came. */
function mayBeLenient({ source }: EvidenceItem, bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return source === "data" || bytes[0] === 0xef || text.includes("NaN") || text.includes("Infinity");
}

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
    return true;
  } catch {
    return false;
  }
}

const CHUNK_BYTES = 1 << 20;

/** A piece in each turn of the event loop: they may be many. */
async function* inTurns(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    if (at > 0) await nextTurn();
    yield bytes.subarray(at, at + CHUNK_BYTES);
  }
}

async function* encodeBody(chunks: AsyncIterable<Uint8Array>, encoding: BodyEncoding): AsyncGenerator<Uint8Array> {
  if (encoding === "json") return yield* chunks;
  yield Buffer.from('"');
  for await (const text of encoding === "text" ? toText(chunks) : toBase64(chunks)) yield Buffer.from(text);
  yield Buffer.from('"');
}

/** Cut between groups of three bytes, which base64 writes without a remainder. */
async function* toBase64(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest: Uint8Array = new Uint8Array();
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk]);
    const end = bytes.length - (bytes.length % 3);
    yield bytes.toString("base64", 0, end);
    rest = bytes.subarray(end);
  }
  yield Buffer.from(rest).toString("base64");
}

async function* toText(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const write = (text: string): string => JSON.stringify(text).slice(1, -1);
  for await (const chunk of chunks) yield write(decoder.decode(chunk, { stream: true }));
  yield write(decoder.decode());
}

/** Where each body is in a document of version 0.1.0, which was kept whole with this beside it. */
const indexSchema = z.object({
  bytes,
  entries: z.array(
    z.object({ name: z.string(), format, shape: z.object({ kind, rows, path }), encoding, offset: z.int(), length: z.int() }),
  ),
});

/** A damaged document of version 0.1.0 gives way to a manifest, which its index must not describe. */
async function removeDamagedDocument(blobs: BlobStore, hash: string): Promise<void> {
  if (!blobs.has(toIndexName(hash))) return;
  const document = await blobs.get(toName(hash)).catch(() => null);
  if (document === null) deleteBlobs(blobs, [hash]);
}

/** Opens a dataset that version 0.1.0 wrote: the document itself, and an index beside it. Null when there is no index. */
async function openWholeDocument(blobs: BlobStore, hash: string): Promise<Omit<DatasetReader, "hash" | "url"> | null> {
  if (!blobs.has(toIndexName(hash))) return null;
  const { bytes, entries } = indexSchema.parse(parseJson(blobs.read(toIndexName(hash))));
  return {
    bytes,
    tables: entries.filter(hasRows).map(({ name, format, shape: { path, rows } }) => ({ name, format, path, rows })),
    stream: () => blobs.stream(`${hash}.json`),
    async readTable(name) {
      const entry = entries.find((one) => one.name === name);
      if (entry === undefined) return null;
      const body = await readAll(blobs.stream(`${hash}.json`, entry));
      if (entry.encoding === "json") return body;
      return Buffer.from(JSON.parse(body.toString()) as string, entry.encoding === "base64" ? "base64" : "utf8");
    },
  };
}
