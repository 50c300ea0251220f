/** The program of the thread that reads large outputs: it parses, hashes and digests what would block the main thread. */
import { getHeapStatistics } from "node:v8";
import { serveThread } from "../../concurrency/worker-thread.ts";
import { parseJson } from "../../text/json.ts";
import type { NamedData, PrecisionLoss, ToolOutput } from "../evidence-store.ts";
import { toReadPart, type ReadPart } from "../output-part.ts";
import { readData, readToolOutput } from "../read-tool-output.ts";
import { rowsAt, type RowsAt, type RowsQuestion } from "../rows-at.ts";
import { readMessage, type CallIds, type ReadMessage } from "./read-message.ts";

export type ReadingRequest =
  | { readonly kind: "message"; readonly bytes: Uint8Array<ArrayBuffer>; readonly callIds: CallIds }
  /** `precisionLoss`: of a value that reached us parsed, which the main part is the JSON text of. */
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

serveThread(answer, buffersOf);

function answer(request: ReadingRequest): ReadingAnswer {
  try {
    const limit = getHeapStatistics().heap_size_limit * 0.85;
    const isParsed = request.kind !== "data" || request.data.format === "json";
    if (isParsed && estimateHeapBytes(request, atMost) > limit && estimateHeapBytes(request, counted) > limit)
      throw new RangeError("it takes more memory than there is");
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

function buffersOf(answered: ReadingAnswer): ArrayBuffer[] {
  if (answered.kind === "parts") return answered.parts.map(({ body }) => body.buffer);
  if (answered.kind !== "message") return [];
  const { message } = answered;
  if (message.kind === "answer") return message.parts.map(({ body }) => body.buffer);
  if (message.kind === "other") return [message.bytes.buffer];
  return [];
}

const OBJECT_BYTES = 64;
const FIELD_BYTES = 80;
const VALUE_BYTES = 32;
const TEXT_COPIES = 8;

/**
 * What parsing the text in a request may take. A parser that runs out of memory takes the whole process with it, so it must not come to that. Most requests are
 * small enough for the rough estimate, which looks at no byte.
 */
function estimateHeapBytes(part: unknown, ofText: (text: string | Uint8Array) => number): number {
  if (typeof part === "string" || part instanceof Uint8Array) return ofText(part);
  if (typeof part !== "object" || part === null) return 0;
  return Object.values(part).reduce<number>((sum, inner) => sum + estimateHeapBytes(inner, ofText), OBJECT_BYTES);
}

/** As if each character had three bytes and were a colon. */
function atMost({ length }: string | Uint8Array): number {
  return length * (3 * TEXT_COPIES + FIELD_BYTES);
}

/** Each bracket may be an object, each colon a field, each comma a value, and the text itself is held a few times over. */
function counted(text: string | Uint8Array): number {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  let sum = bytes.length * TEXT_COPIES;
  for (const code of bytes) {
    if (code === 0x2c) sum += VALUE_BYTES;
    else if (code === 0x3a) sum += FIELD_BYTES;
    else if (code === 0x5b || code === 0x7b) sum += OBJECT_BYTES;
  }
  return sum;
}
