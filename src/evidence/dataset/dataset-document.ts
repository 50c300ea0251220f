import { isUtf8 } from "node:buffer";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { hashBytes } from "../../blobs/create-file-blobs.ts";
import type { EvidenceItem } from "../evidence-store.ts";
import { hasRows, type BodyEncoding, type Dataset, type DatasetArtifact, type DatasetTable } from "./dataset.ts";

/** A value inside the document: an output, the rows of a chart, or the data behind a picture. */
export interface DocumentBody {
  readonly sha256: string;
  readonly encoding: BodyEncoding;
  readonly content: Uint8Array;
}

/** Text of the document as it is, or a body that `encodeBody` writes. */
export type DocumentPiece = string | DocumentBody;

/** Consecutive pieces of the document, with at most one body. */
interface DocumentPart {
  readonly pieces: readonly DocumentPiece[];
  readonly table?: (DatasetTable & { readonly sha256: string }) | undefined;
}

/** A part that is not read yet. */
export interface PartSource {
  /** Size of its output. */
  readonly bytes: number;
  read(): Promise<DocumentPart>;
}

/** The JSON document of a dataset as parts in order. */
export function toDocumentParts({ facts, items, artifacts }: Dataset): PartSource[] {
  const comma = (index: number): string => (index === 0 ? "\n" : ",\n");
  const text = (piece: string): PartSource => ({ bytes: 0, read: async () => ({ pieces: [piece] }) });
  const charts = artifacts.filter(({ data }) => data !== undefined);
  return [
    text(`${openObject({ schemaVersion: 1, ...facts })},"outputs":[`),
    ...items.map((item, index) => ({ bytes: item.bytes, read: () => readOutputPart(item, comma(index)) })),
    text(`\n],"artifacts":[`),
    ...artifacts.map((artifact, index) => ({
      bytes: 0,
      read: () => readArtifactPart(artifact, comma(index), `chart_${charts.indexOf(artifact) + 1}`),
    })),
    text("\n]}\n"),
  ];
}

async function readOutputPart(item: EvidenceItem, separator: string): Promise<DocumentPart> {
  const content = item.read();
  const sha256 = item.file === undefined ? item.sha256 : await hashBytes(content); // a file may change between two reads
  const encoding = encodingOf(item, content);
  const { alias: name, format, shape, reader } = item;
  return {
    pieces: [
      `${separator}${openObject(describeItem(item))},"value":`,
      { sha256, encoding, content },
      `,"encoding":${JSON.stringify(encoding)},"sha256":"${sha256}"}`,
    ],
    table: hasRows(item) ? { name, format, path: shape.path, rows: shape.rows, sha256, reader } : undefined,
  };
}

async function readArtifactPart({ data, figure, ...artifact }: DatasetArtifact, separator: string, name: string): Promise<DocumentPart> {
  const value = data ?? figure;
  if (value === undefined) return { pieces: [`${separator}${JSON.stringify(artifact)}`] };
  await yieldToEventLoop(); // writing the JSON of many large artifacts takes long
  const content = Buffer.from(JSON.stringify(value));
  const sha256 = await hashBytes(content);
  const key = data === undefined ? "figure" : "data";
  return {
    pieces: [`${separator}${openObject(artifact)},"${key}":`, { sha256, encoding: "json", content }, "}"],
    table: data && { name, format: "json", path: [], rows: data.length, sha256 },
  };
}

/** An object as JSON, without its closing brace. */
function openObject(value: object): string {
  return JSON.stringify(value).slice(0, -1);
}

/** JSON.stringify omits members that are undefined. */
function describeItem(item: EvidenceItem): object {
  const { alias, source, tool, at, bytes, format, mimeType, shape, precisionLoss, reader, partOf } = item;
  return { alias, source, tool, arguments: item.arguments, at, bytes, format, mimeType, shape, precisionLoss, reader, partOf };
}

const LARGE_FILE_BYTES = 16 << 20;

/** Outputs of format JSON that are not valid JSON (NaN, a byte order mark, a wrong file) become text. */
function encodingOf(item: EvidenceItem, bytes: Uint8Array): BodyEncoding {
  const isText = !["bytes", "parquet", "xlsx"].includes(item.format) && (!["csv", "tsv"].includes(item.format) || isUtf8(bytes));
  if (!isText) return "base64";
  const isLargeFile = item.file !== undefined && bytes.length > LARGE_FILE_BYTES; // its content is unknown, and parsing it takes too long
  return item.format === "json" && !isLargeFile && (!mayBeInvalidJson(item, bytes) || isJson(bytes)) ? "json" : "text";
}

/** False saves parsing: tool outputs and results were parsed when they were kept. */
function mayBeInvalidJson({ source }: EvidenceItem, bytes: Uint8Array): boolean {
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

const BATCH_PARTS = 16;
const BATCH_BYTES = 16 << 20;

/** Groups parts that are read and written together: up to 16 small outputs, or one large output. */
export function* inBatches(parts: readonly PartSource[]): Generator<PartSource[]> {
  let batch: PartSource[] = [];
  let batchBytes = 0;
  for (const part of parts) {
    if (batch.length === BATCH_PARTS || batchBytes + part.bytes > BATCH_BYTES) {
      yield batch;
      [batch, batchBytes] = [[], 0];
    }
    batch.push(part);
    batchBytes += part.bytes;
  }
  yield batch;
}

/** The bytes of a piece in the document, in chunks. Lets the event loop run between chunks. */
export async function* encodePiece(piece: DocumentPiece): AsyncGenerator<Uint8Array> {
  if (typeof piece === "string") yield Buffer.from(piece);
  else yield* encodeBody(inChunks(piece.content), piece.encoding);
}

const CHUNK_BYTES = 1 << 20;

async function* inChunks(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    if (at > 0) await yieldToEventLoop();
    yield bytes.subarray(at, at + CHUNK_BYTES);
  }
}

/** Encodes the bytes of a body as JSON: JSON as it is, text as a string, other bytes as base64 in a string. */
export async function* encodeBody(chunks: AsyncIterable<Uint8Array>, encoding: BodyEncoding): AsyncGenerator<Uint8Array> {
  if (encoding === "json") return yield* chunks;
  yield Buffer.from('"');
  for await (const text of encoding === "text" ? toText(chunks) : toBase64(chunks)) yield Buffer.from(text);
  yield Buffer.from('"');
}

/** Splits only between groups of three bytes, so that base64 needs no padding before the end. */
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
