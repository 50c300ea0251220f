/** The program of the worker thread that reads large outputs: parses, hashes and digests them. */
import { getHeapStatistics } from "node:v8";
import { serveThread } from "../../concurrency/worker-thread.ts";
import { startOf } from "../../text/clip-text.ts";
import { isRecord, parseJson, scanMessage } from "../../text/json.ts";
import type { NamedData, PrecisionLoss, ToolOutput } from "../evidence-store.ts";
import { toReadPart, type ReadPart } from "../output-part.ts";
import { readData, readMcpResult, readToolOutput } from "../read-tool-output.ts";
import { rowsAt, type RowsAt, type RowsQuestion } from "../rows-at.ts";

export type MessageId = string | number;

export type ReadMessage =
  /** The answer to a tool call. `result` has only the small fields; the content is in `parts`. */
  | { readonly kind: "answer"; readonly id: MessageId; readonly result: Readonly<Record<string, unknown>>; readonly parts: ReadPart[] }
  /** Any other message, as sent. */
  | { readonly kind: "other"; readonly bytes: Uint8Array<ArrayBuffer> }
  /** Not JSON. `text` is how it starts. */
  | { readonly kind: "garbage"; readonly text: string };

/** Ids of the tool calls that wait for an answer; `any` if only one answer can arrive. */
export type CallIds = readonly MessageId[] | "any";

export type ReadingRequest =
  | { readonly kind: "message"; readonly bytes: Uint8Array<ArrayBuffer>; readonly callIds: CallIds }
  /** `precisionLoss` belongs to the parsed value whose JSON text is the main part. */
  | { readonly kind: "output"; readonly output: Omit<ToolOutput, "tool">; readonly precisionLoss?: PrecisionLoss | undefined }
  | { readonly kind: "data"; readonly data: Pick<NamedData, "format" | "bytes" | "mimeType"> }
  | { readonly kind: "rows"; readonly bytes: Uint8Array; readonly question: RowsQuestion }
  | { readonly kind: "json"; readonly text: string };

export type ReadingAnswer =
  | { readonly kind: "message"; readonly message: ReadMessage }
  | { readonly kind: "parts"; readonly parts: readonly ReadPart[] }
  | { readonly kind: "rows"; readonly found: RowsAt }
  | { readonly kind: "json"; readonly isJson: boolean }
  | { readonly kind: "refused"; readonly reason: string };

serveThread(answer, transferredBuffers);

function answer(request: ReadingRequest): ReadingAnswer {
  try {
    const limit = getHeapStatistics().heap_size_limit * 0.85;
    const isParsed = request.kind !== "data" || request.data.format === "json";
    if (isParsed && estimateHeapBytes(request, boundTextBytes) > limit && estimateHeapBytes(request, countTextBytes) > limit)
      throw new RangeError("it needs more memory than is available");
    return read(request);
  } catch (error) {
    return { kind: "refused", reason: (error as Error).message };
  }
}

function read(request: ReadingRequest): ReadingAnswer {
  switch (request.kind) {
    case "message":
      return { kind: "message", message: readMessage(request.bytes, request.callIds) };
    case "output": {
      const [main, ...others] = readToolOutput({ tool: "", ...request.output });
      const { precisionLoss } = request;
      return { kind: "parts", parts: [precisionLoss === undefined ? main : { ...main, precisionLoss }, ...others].map(toReadPart) };
    }
    case "data":
      return { kind: "parts", parts: [toReadPart(readData(request.data))] };
    case "json":
      return { kind: "json", isJson: parseJson(request.text) !== undefined };
    case "rows":
      return { kind: "rows", found: rowsAt(parseJson(request.bytes), request.question) };
  }
}

function transferredBuffers(answered: ReadingAnswer): ArrayBuffer[] {
  if (answered.kind === "parts") return answered.parts.map(({ body }) => body.buffer);
  if (answered.kind !== "message") return [];
  const { message } = answered;
  if (message.kind === "answer") return message.parts.map(({ body }) => body.buffer);
  if (message.kind === "other") return [message.bytes.buffer];
  return [];
}

const GARBAGE_CHARACTERS = 200;
/** Other messages go to the main thread as a whole, so their size is limited. */
const MAX_OTHER_BYTES = 8 * 1024 * 1024;

/** Reads a large JSON-RPC message. Throws a RangeError if it is too large and not the answer to a tool call. */
function readMessage(bytes: Uint8Array<ArrayBuffer>, callIds: CallIds): ReadMessage {
  const text = new TextDecoder().decode(bytes);
  const message = parseJson(text);
  if (message === undefined) return { kind: "garbage", text: startOf(text, GARBAGE_CHARACTERS) };
  if (isAnswer(message, callIds)) {
    const { structuredJson } = scanMessage(text);
    const parts = readMcpResult(message.result, structuredJson).map(toReadPart);
    return { kind: "answer", id: message.id, result: toSmallResult(message.result, structuredJson), parts };
  }
  if (bytes.length > MAX_OTHER_BYTES)
    throw new RangeError(`it is not the answer to a tool call, and other messages may have ${MAX_OTHER_BYTES} bytes`);
  return { kind: "other", bytes };
}

/** Since protocol version 2026-07-28 a result may also request input; the SDK handles those. */
function isAnswer(message: unknown, callIds: CallIds): message is { id: MessageId; result: Readonly<Record<string, unknown>> } {
  if (!isRecord(message) || "method" in message || !isRecord(message["result"])) return false;
  const { resultType } = message["result"];
  return (callIds === "any" || callIds.includes(message["id"] as MessageId)) && (resultType === undefined || resultType === "complete");
}

const SMALL_CHARACTERS = 65_536;
/** Enough text to find out what went wrong. */
const ERROR_CHARACTERS = 262_144;

/** The result without the content that is in its parts. A result with `isError` keeps its texts, because the error is made from them. */
function toSmallResult(result: Readonly<Record<string, unknown>>, structuredJson = ""): Readonly<Record<string, unknown>> {
  const { content, structuredContent, ...others } = result;
  const small = Object.fromEntries(Object.entries(others).filter(([, value]) => JSON.stringify(value).length <= SMALL_CHARACTERS));
  if (result["isError"] !== true) return { ...small, content: [] };
  const structured = structuredContent !== undefined && structuredJson.length <= ERROR_CHARACTERS ? { structuredContent } : {};
  return { ...small, content: Array.isArray(content) ? toShortTexts(content) : [], ...structured };
}

function toShortTexts(content: readonly unknown[]): unknown[] {
  const texts = content.slice(0, 100).flatMap((part) => (isRecord(part) && typeof part["text"] === "string" ? [part["text"]] : []));
  return texts.map((text) => ({ type: "text", text: startOf(text, ERROR_CHARACTERS) }));
}

const OBJECT_BYTES = 64;
const FIELD_BYTES = 80;
const VALUE_BYTES = 32;
const TEXT_COPIES = 8;

/**
 * Estimates the heap that parsing a request needs. A parser that runs out of memory kills the whole process, so this is checked first. The rough estimate
 * (`boundTextBytes`) reads no bytes and is enough for most requests.
 */
function estimateHeapBytes(part: unknown, ofText: (text: string | Uint8Array) => number): number {
  if (typeof part === "string" || part instanceof Uint8Array) return ofText(part);
  if (typeof part !== "object" || part === null) return 0;
  return Object.values(part).reduce<number>((sum, inner) => sum + estimateHeapBytes(inner, ofText), OBJECT_BYTES);
}

/** Upper bound: as if each character had three bytes and were a colon. */
function boundTextBytes({ length }: string | Uint8Array): number {
  return length * (3 * TEXT_COPIES + FIELD_BYTES);
}

/** Counts an object per bracket, a field per colon and a value per comma, plus several copies of the text. */
function countTextBytes(text: string | Uint8Array): number {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  let sum = bytes.length * TEXT_COPIES;
  for (const code of bytes) {
    if (code === 0x2c) sum += VALUE_BYTES;
    else if (code === 0x3a) sum += FIELD_BYTES;
    else if (code === 0x5b || code === 0x7b) sum += OBJECT_BYTES;
  }
  return sum;
}
