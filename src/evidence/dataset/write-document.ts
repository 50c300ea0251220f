import { createHash, type Hash } from "node:crypto";
import type { EvidenceItem } from "../contract.ts";
import type { Dataset, DatasetIndex, DatasetIndexEntry } from "./contract.ts";

/** Takes the next bytes of the document, in order. */
export type DocumentSink = (bytes: Uint8Array) => Promise<void>;

const CHUNK_BYTES = 1 << 20;
const LARGE_FILE_BYTES = 16 << 20;

/** Writes the document to a sink as it is made, so that it is never in memory as a whole. Gives its hash, and where things are in it. */
export async function writeDocument(dataset: Dataset, sink: DocumentSink): Promise<{ hash: string; index: DatasetIndex }> {
  const whole = createHash("sha256");
  const entries: DatasetIndexEntry[] = [];
  let offset = 0;

  async function write(bytes: Uint8Array, also?: Hash): Promise<void> {
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      const chunk = bytes.subarray(at, at + CHUNK_BYTES);
      whole.update(chunk);
      also?.update(chunk);
      offset += chunk.length;
      await sink(chunk);
    }
  }
  const text = (words: string): Promise<void> => write(Buffer.from(words));

  const facts = JSON.stringify({ schemaVersion: 1, ...dataset.facts });
  await text(`${facts.slice(0, -1)},"outputs":[`);
  for (const [index, item] of dataset.items.entries()) {
    await text(`${index === 0 ? "\n" : ",\n"}${JSON.stringify(describe(item)).slice(0, -1)},"value":`);
    const { encoding, body } = encode(item);
    const started = offset;
    const own = createHash("sha256");
    for (const piece of body) await write(piece, encoding === "json" ? own : undefined);
    entries.push({ name: item.alias, format: item.format, shape: pick(item), encoding, offset: started, length: offset - started });
    const sha256 = encoding === "json" ? own.digest("hex") : item.sha256;
    await text(`,"encoding":${JSON.stringify(encoding)},"sha256":"${sha256}"}`);
  }
  await text(`\n],"artifacts":[`);
  let charts = 0;
  for (const [index, { data, ...artifact }] of dataset.artifacts.entries()) {
    await text(`${index === 0 ? "\n" : ",\n"}${JSON.stringify(artifact).slice(0, -1)}`);
    if (data !== undefined) {
      charts += 1;
      await text(`,"data":`);
      const started = offset;
      await text(JSON.stringify(data));
      const shape = { kind: "records", rows: data.length, path: [] } as const;
      entries.push({ name: `chart_${charts}`, format: "json", shape, encoding: "json", offset: started, length: offset - started });
    }
    await text("}");
  }
  await text("\n]}\n");
  return { hash: whole.digest("hex"), index: { schemaVersion: 1, bytes: offset, entries } };
}

function describe({
  alias,
  source,
  tool,
  arguments: given,
  at,
  bytes,
  format,
  mimeType,
  shape,
  precisionLoss,
  partOf,
}: EvidenceItem): object {
  return { alias, source, tool, arguments: given, at, bytes, format, mimeType, shape, precisionLoss, partOf };
}

function pick({ shape: { kind, rows, path } }: EvidenceItem): DatasetIndexEntry["shape"] {
  return { kind, rows, path };
}

/** JSON that is not quite JSON (NaN, a byte order mark, a file that only says so) stands there as text. Text is made a piece at a time: a file may be large. */
function encode(item: EvidenceItem): { encoding: DatasetIndexEntry["encoding"]; body: Iterable<Uint8Array> } {
  const bytes = item.read();
  const isLargeFile = item.file !== undefined && bytes.length > LARGE_FILE_BYTES; // what is in it is not known, and parsing it takes too much
  if (item.format === "json" && !isLargeFile && (!mayBeLenient(item, bytes) || isJson(bytes))) return { encoding: "json", body: [bytes] };
  const isBinary = item.format === "bytes" || item.format === "parquet" || item.format === "xlsx";
  return isBinary ? { encoding: "base64", body: inQuotes(toBase64(bytes)) } : { encoding: "text", body: inQuotes(toText(bytes)) };
}

function* inQuotes(pieces: Iterable<string>): Generator<Uint8Array> {
  yield Buffer.from('"');
  for (const piece of pieces) yield Buffer.from(piece);
  yield Buffer.from('"');
}

/** Cut between groups of three bytes, which base64 writes without a remainder. */
function* toBase64(bytes: Uint8Array): Generator<string> {
  const step = CHUNK_BYTES - (CHUNK_BYTES % 3);
  for (let at = 0; at < bytes.length; at += step)
    yield Buffer.from(bytes.buffer, bytes.byteOffset + at, Math.min(step, bytes.length - at)).toString("base64");
}

function* toText(bytes: Uint8Array): Generator<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const write = (text: string): string => JSON.stringify(text).slice(1, -1);
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES)
    yield write(decoder.decode(bytes.subarray(at, at + CHUNK_BYTES), { stream: true }));
  yield write(decoder.decode());
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
