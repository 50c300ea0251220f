/** The program of the thread that reads large outputs: it parses, hashes and digests what would hold up everybody on the host's own thread. */
import { getHeapStatistics } from "node:v8";
import { parentPort } from "node:worker_threads";
import { SluiceError } from "../../errors/sluice-error.ts";
import { readData } from "../read-data.ts";
import type { McpContent } from "../mcp-result.ts";
import { readMcpResult } from "../read-mcp-result.ts";
import { readText } from "../read-text.ts";
import { readToolOutput } from "../read-tool-output.ts";
import { parseBytes, rowsAt } from "../rows-at.ts";
import { estimateHeapBytes, mostHeapBytes } from "./estimate-heap.ts";
import { readMessage } from "./read-message.ts";
import type { ThreadAnswer, ThreadMessage, ThreadRequest, ThreadResult } from "./reading-requests.ts";
import { toReadPart } from "./to-read-part.ts";

const pieces = new Map<number, Uint8Array[]>();

parentPort?.on("message", (message: ThreadMessage) => {
  const { id } = message;
  if ("piece" in message) addPiece(id, message.piece);
  else if ("isDropped" in message) pieces.delete(id);
  else reply(id, answer(id, message.request));
});

function addPiece(id: number, piece: Uint8Array): void {
  const list = pieces.get(id) ?? [];
  list.push(piece);
  pieces.set(id, list);
}

function takePieces(id: number): Buffer {
  const bytes = Buffer.concat(pieces.get(id) ?? []);
  pieces.delete(id);
  return bytes;
}

function answer(id: number, request: ThreadRequest): ThreadAnswer {
  try {
    return { ok: true, result: read(id, request) };
  } catch (error) {
    const { code, message, hint, details } = error as SluiceError;
    const facts = error instanceof SluiceError ? { code, message, details, ...(hint === undefined ? {} : { hint }) } : null;
    return { ok: false, reason: message, facts };
  }
}

function read(id: number, request: ThreadRequest): ThreadResult {
  switch (request.kind) {
    case "message": {
      const bytes = takePieces(id);
      refuseTooMuch(bytes);
      return { kind: "message", message: readMessage(bytes, request.callIds) };
    }
    case "value": {
      const bytes = takePieces(id);
      refuseTooMuch(bytes);
      const { value } = readText(bytes.toString("utf8"));
      const part = { part: "json", format: "json", body: bytes, value, isStrictJson: true, precisionLoss: request.precisionLoss } as const;
      return { kind: "parts", parts: [toReadPart(part)] };
    }
    case "output": {
      const { output, structured } = request;
      const written = structured === undefined ? undefined : { json: takePieces(id).toString("utf8"), ...structured };
      refuseTooMuch([output, written?.json]);
      const parts = written === undefined ? readToolOutput({ tool: "", ...output }) : readMcpResult(output.output as McpContent, written);
      return { kind: "parts", parts: parts.map(toReadPart) };
    }
    case "rows": {
      const bytes = takePieces(id);
      refuseTooMuch(bytes);
      return { kind: "rows", found: rowsAt(parseBytes(bytes), request) };
    }
    case "text":
      refuseTooMuch(request.text);
      return { kind: "parts", parts: [toReadPart(readText(request.text))] };
    case "data":
      refuseTooMuch(request.data.format === "json" ? request.data.bytes : null);
      return { kind: "parts", parts: [toReadPart(readData(request.data))] };
  }
}

function refuseTooMuch(text: unknown): void {
  const allowed = getHeapStatistics().heap_size_limit * 0.85;
  if (mostHeapBytes(text) > allowed && estimateHeapBytes(text) > allowed) throw new RangeError("it takes more memory than there is");
}

/** Bytes are handed over, not copied. */
function reply(id: number, answered: ThreadAnswer): void {
  parentPort?.postMessage({ id, ...answered }, answered.ok ? buffersOf(answered.result) : []);
}

function buffersOf(result: ThreadResult): ArrayBuffer[] {
  if (result.kind === "rows") return [];
  const parts = result.kind === "parts" ? result.parts : result.message.kind === "answer" ? result.message.parts : [];
  return parts.map(({ body }) => body.buffer as ArrayBuffer);
}
