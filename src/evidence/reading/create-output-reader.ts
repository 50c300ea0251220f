import { totalmem } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import { SluiceError } from "../../errors/sluice-error.ts";
import type { CellResult, NamedData, PrecisionLoss, ToolOutput } from "../contract.ts";
import { isMcpResult, isObject } from "../mcp-result.ts";
import { parseBytes, rowsAt, type RowsAt, type RowsQuestion } from "../rows-at.ts";
import { isLargeOutput, LARGE_BYTES } from "./is-large-output.ts";
import type { CallIds, MessageId, ReadMessage } from "./read-message.ts";
import { ReadOutput } from "./read-output.ts";
import type { ThreadRequest } from "./reading-requests.ts";
import { createReadingThread } from "./reading-thread.ts";
import { isLargeValue, writeInTurns } from "./write-in-turns.ts";

/**
 * Reads large outputs in a thread, so that they hold up nobody; small ones are left as they are, to be read at once. The thread starts with the first large
 * one and ends by itself. Rejects with OUTPUT_UNREADABLE when there is not enough memory for one.
 */
export interface OutputReader {
  /** The same output, with `read` when it is large. */
  readOutput(output: ToolOutput): Promise<ToolOutput>;
  /** Null when it is small. */
  readResult(result: Pick<CellResult, "json">): Promise<ReadOutput | null>;
  readData(data: NamedData): Promise<ReadOutput | null>;
  /** Rows inside of JSON that is kept. */
  readRows(json: Uint8Array, question: RowsQuestion): Promise<RowsAt>;
  /** A JSON-RPC message that turned out to be large while it comes. */
  openMessage(): LargeMessage;
  /** Ends the thread now. Idempotent; what is being read is not. */
  close(): Promise<void>;
}

export interface LargeMessage {
  readonly bytes: number;
  /** The bytes are copied. */
  push(chunk: Uint8Array): void;
  /** When all of it has come. */
  read(callIds: CallIds): Promise<MessageRead>;
  /** It will never be whole. */
  drop(): void;
}

export type MessageRead =
  | Exclude<ReadMessage, { kind: "answer" }>
  | { readonly kind: "answer"; readonly id: MessageId; readonly result: Readonly<Record<string, unknown>>; readonly read: ReadOutput };

export interface OutputReaderOptions {
  /** How long the thread is kept for the next one. 10 s unless told. */
  readonly idleMs?: number;
  /** What the thread may use: half of the memory, and not more than 8 GB, unless told. */
  readonly heapMegabytes?: number;
}

/** What goes to the thread at once: copying it is nothing that anybody would notice. */
const PIECE_BYTES = 1024 * 1024;

export function createOutputReader({ idleMs = 10_000, heapMegabytes }: OutputReaderOptions = {}): OutputReader {
  const thread = createReadingThread({ idleMs, heapMegabytes: () => heapMegabytes ?? usualHeap() });

  async function readParts(request: ThreadRequest, transfer?: readonly ArrayBuffer[], id: number = thread.open()): Promise<ReadOutput> {
    const result = await thread.ask(id, request, transfer);
    if (result.kind !== "parts") throw new TypeError("the thread answered another question");
    return new ReadOutput(result.parts);
  }

  function openMessage(): LargeMessage {
    const id = thread.open();
    const pieces = createPieces((piece) => thread.push(id, piece));
    return {
      get bytes() {
        return pieces.bytes();
      },
      push: pieces.push,
      async read(callIds) {
        pieces.flush();
        const result = await thread.ask(id, { kind: "message", callIds }).catch((error: unknown) => {
          throw unreadable(pieces.bytes(), error);
        });
        if (result.kind !== "message") throw new TypeError("the thread answered another question");
        const { message } = result;
        if (message.kind !== "answer") return message;
        return { kind: "answer", id: message.id, result: message.result, read: new ReadOutput(message.parts) };
      },
      drop: () => thread.drop(id),
    };
  }

  /** Writes a value and has the thread read it. Null when it has to be written at once after all, which says what is wrong with it. */
  async function readValue(
    value: unknown,
    toQuestion: (precisionLoss: PrecisionLoss | undefined) => ThreadRequest,
  ): Promise<ReadOutput | null> {
    const id = thread.open();
    const pieces = createPieces((piece) => thread.push(id, piece));
    try {
      const precisionLoss = await writeInTurns(value, (text) => pieces.push(Buffer.from(text)));
      pieces.flush();
      return await readParts(toQuestion(precisionLoss), [], id);
    } catch (error) {
      thread.drop(id);
      if (error instanceof RangeError || (error instanceof SluiceError && error.code === "EVIDENCE_NOT_JSON")) return null;
      throw error;
    }
  }

  function readLarge(given: ToolOutput): Promise<ReadOutput | null> | null {
    const { output } = given;
    if (isValue(given)) return isLargeValue(output) ? readValue(output, (precisionLoss) => ({ kind: "value", precisionLoss })) : null;
    const structured = structuredOf(given);
    if (isLargeValue(structured)) {
      const rest = toRequest(given, true);
      return readValue(structured, (precisionLoss) => ({ kind: "output", output: rest, structured: { precisionLoss } }));
    }
    if (!(output instanceof Uint8Array)) return isLargeOutput(given) ? readParts({ kind: "output", output: toRequest(given) }) : null;
    if (output.length < LARGE_BYTES) return null;
    const own = Uint8Array.from(output);
    return readParts({ kind: "output", output: { ...toRequest(given), output: own } }, [own.buffer]);
  }

  return {
    async readOutput(given) {
      if (given.read !== undefined) return given;
      const read = await readLarge(given);
      return read === null ? given : { ...given, read };
    },
    readResult: async ({ json }) => (json.length < LARGE_BYTES ? null : await readParts({ kind: "text", text: json })),
    async readData({ format, bytes, mimeType }) {
      if (bytes.length < LARGE_BYTES) return null;
      const own = Uint8Array.from(bytes);
      const data = { format, bytes: own, ...(mimeType === undefined ? {} : { mimeType }) };
      return await readParts({ kind: "data", data }, [own.buffer]);
    },
    async readRows(json, question) {
      if (json.length < LARGE_BYTES) return rowsAt(parseBytes(json), question);
      const id = thread.open();
      for (let at = 0; at < json.length; at += PIECE_BYTES) {
        thread.push(id, Uint8Array.from(json.subarray(at, at + PIECE_BYTES)));
        await nextTurn();
      }
      const result = await thread.ask(id, { kind: "rows", ...question });
      if (result.kind !== "rows") throw new TypeError("the thread answered another question");
      return result.found;
    },
    openMessage,
    close: () => thread.close(),
  };
}

/** Collects small chunks to pieces that are worth handing over. */
function createPieces(give: (piece: Uint8Array<ArrayBuffer>) => void): { push(chunk: Uint8Array): void; flush(): void; bytes(): number } {
  let chunks: Uint8Array[] = [];
  let waiting = 0;
  let bytes = 0;
  const flush = (): void => {
    if (waiting > 0) give(join(chunks, waiting));
    chunks = [];
    waiting = 0;
  };
  return {
    push(chunk) {
      chunks.push(chunk);
      bytes += chunk.length;
      waiting += chunk.length;
      if (waiting >= PIECE_BYTES) flush();
    },
    flush,
    bytes: () => bytes,
  };
}

/** Neither text nor bytes nor an MCP result. */
function isValue({ output, as }: ToolOutput): boolean {
  if (typeof output !== "object" || output === null || output instanceof Uint8Array) return false;
  return as === "value" || (as === undefined && !isMcpResult(output));
}

function usualHeap(): number {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return Math.floor(Math.min(8192, memory / 2 / 1024 ** 2));
}

/** In the words of a transport, which says what it did because of it. */
function unreadable(bytes: number, cause: unknown): SluiceError {
  const { details } = cause as SluiceError;
  return new SluiceError({
    code: "OUTPUT_UNREADABLE",
    message: `a message of ${bytes} bytes could not be read: ${String(details["reason"])}`,
    details: { ...details, bytes },
    cause,
  });
}

/** The parsed value is not needed where there is its text, or will be. */
function toRequest({ output, as, structuredJson }: ToolOutput, isWritten = structuredJson !== undefined): OutputRequest {
  const named = as === undefined ? {} : { as };
  if (!isWritten || !isObject(output)) return { output, ...named };
  const { structuredContent: _, ...others } = output;
  return { output: others, ...named, ...(structuredJson === undefined ? {} : { structuredJson }) };
}

type OutputRequest = Pick<ToolOutput, "output" | "as" | "structuredJson">;

/** Of an MCP result, where there is no text of it. */
function structuredOf({ output, structuredJson }: ToolOutput): unknown {
  return isObject(output) && structuredJson === undefined ? output["structuredContent"] : undefined;
}

function join(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    joined.set(chunk, at);
    at += chunk.length;
  }
  return joined;
}
