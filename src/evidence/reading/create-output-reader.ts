import { totalmem } from "node:os";
import { join } from "node:path";
import { createWorkerThread, type ThreadFailure } from "../../concurrency/worker-thread.ts";
import { SluiceError } from "../../errors/sluice-error.ts";
import { parseJson, isRecord } from "../../text/json.ts";
import type { CellResult, NamedData, ToolOutput } from "../evidence-store.ts";
import { isMcpResult } from "../read-tool-output.ts";
import { ReadOutput } from "../output-part.ts";
import { rowsAt, type RowsAt, type RowsQuestion } from "../rows-at.ts";
import { writeLarge } from "./write-large.ts";
import type { CallIds, MessageId, ReadMessage } from "./read-message.ts";
import type { ReadingAnswer, ReadingRequest } from "./read-output-process.ts";

/**
 * Reads large outputs in a thread, so that they do not block the main one; small ones are left as they are, to be read at once. The thread starts with the
 * first large one and ends by itself. Rejects with OUTPUT_UNREADABLE when there is not enough memory for one.
 */
export interface OutputReader {
  /** The same output, with `read` when it is large. */
  readOutput(output: ToolOutput): Promise<ToolOutput>;
  /** Null when it is small. */
  readResult(result: Pick<CellResult, "json">): Promise<ReadOutput | null>;
  readData(data: NamedData): Promise<ReadOutput | null>;
  /** Rows inside of JSON that is kept. */
  readRows(json: Uint8Array, question: RowsQuestion): Promise<RowsAt>;
  /** A large JSON-RPC message. Its buffer is handed over and cannot be used any more; a message of kind `other` comes back with its bytes. */
  readMessage(bytes: Buffer, callIds: CallIds): Promise<MessageRead>;
  isJson(text: string): Promise<boolean>;
  /** Ends the thread now. Idempotent; what is being read is not. */
  close(): Promise<void>;
}

export type MessageRead =
  | Exclude<ReadMessage, { kind: "answer" }>
  | { readonly kind: "answer"; readonly id: MessageId; readonly result: Readonly<Record<string, unknown>>; readonly read: ReadOutput };

export interface OutputReaderOptions {
  /** How long the thread is kept for the next one. Default: 10 s. */
  readonly idleMs?: number;
  /** What the thread may use. Default: half of the memory, at most 8 GB. */
  readonly heapMegabytes?: number;
}

/** From here on an output is read in a thread. Below, reading it takes a few milliseconds, and less than starting the thread. */
export const LARGE_BYTES: number = 512 * 1024;

export function createOutputReader({ idleMs = 10_000, heapMegabytes }: OutputReaderOptions = {}): OutputReader {
  const thread = createWorkerThread<ReadingRequest, ReadingAnswer>({
    program: join(import.meta.dirname, "read-output-process"),
    resourceLimits: () => ({ stackSizeMb: 4, maxOldGenerationSizeMb: heapMegabytes ?? usualHeap() }),
    idleMs,
  });

  async function ask<Kind extends ReadingAnswer["kind"]>(kind: Kind, request: ReadingRequest, bytes?: Uint8Array<ArrayBuffer>) {
    const answer = await thread.ask(request, bytes === undefined ? [] : [bytes.buffer]).catch((error: ThreadFailure) => {
      throw unreadable(error.reason === "closed" ? "the thread that reads it was ended" : error.message);
    });
    if (answer.kind === "refused") throw unreadable(answer.reason);
    return answer as Extract<ReadingAnswer, { kind: Kind }>;
  }

  async function readParts(request: ReadingRequest, bytes?: Uint8Array<ArrayBuffer>): Promise<ReadOutput> {
    return new ReadOutput((await ask("parts", request, bytes)).parts);
  }

  return {
    async readOutput(given) {
      if (given.read !== undefined || !isLarge(given)) return given;
      return { ...given, read: await readParts({ kind: "output", ...(await toRequest(given)) }) };
    },
    readResult: async ({ json }) => (json.length < LARGE_BYTES ? null : await readParts({ kind: "output", output: { output: json } })),
    async readData({ format, bytes, mimeType }) {
      if (bytes.length < LARGE_BYTES) return null;
      const own = Uint8Array.from(bytes);
      return await readParts({ kind: "data", data: { format, bytes: own, ...(mimeType === undefined ? {} : { mimeType }) } }, own);
    },
    async readRows(json, question) {
      if (json.length < LARGE_BYTES) return rowsAt(parseJson(json), question);
      const own = Uint8Array.from(json);
      return (await ask("rows", { kind: "rows", bytes: own, question }, own)).found;
    },
    async readMessage(bytes, callIds) {
      const own = bytes.length === bytes.buffer.byteLength ? (bytes as Uint8Array<ArrayBuffer>) : Uint8Array.from(bytes);
      const size = bytes.length;
      const { message } = await ask("message", { kind: "message", bytes: own, callIds }, own).catch((error: unknown) => {
        throw unreadableMessage(size, error);
      });
      if (message.kind !== "answer") return message;
      const { parts, ...answer } = message;
      return { ...answer, read: new ReadOutput(parts) };
    },
    isJson: async (text) => (await ask("json", { kind: "json", text })).isJson,
    close: () => thread.close(),
  };
}

function usualHeap(): number {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return Math.floor(Math.min(8192, memory / 2 / 1024 ** 2));
}

/** Values that came parsed are written here: to hand one to a thread takes as long as to write it as JSON. */
async function toRequest(given: ToolOutput): Promise<Omit<Extract<ReadingRequest, { kind: "output" }>, "kind">> {
  const { tool: _tool, arguments: _arguments, ...output } = given;
  if (isValue(given)) {
    const { text, precisionLoss } = await writeLarge(given.output);
    return { output: { output: text }, precisionLoss };
  }
  if (!isRecord(given.output) || given.output["structuredContent"] === undefined) return { output };
  const { structuredContent, ...others } = given.output;
  const { text, precisionLoss } =
    given.structuredJson === undefined ? await writeLarge(structuredContent) : { text: given.structuredJson, precisionLoss: undefined };
  return { output: { output: others, as: "mcp", structuredJson: text }, precisionLoss };
}

/** Neither text nor bytes nor an MCP result. */
function isValue({ output, as }: ToolOutput): boolean {
  if (typeof output !== "object" || output === null || output instanceof Uint8Array) return false;
  return as === "value" || (as === undefined && !isMcpResult(output));
}

/** Counts bytes, characters and values, and stops when there are enough. */
function isLarge({ output, structuredJson = "" }: ToolOutput): boolean {
  let left = LARGE_BYTES - structuredJson.length;
  const open: unknown[] = [output];
  while (open.length > 0 && left > 0) {
    const value = open.pop();
    if (typeof value === "string" || value instanceof Uint8Array) left -= value.length;
    else if (typeof value === "object" && value !== null) for (const item of Object.values(value)) open.push(item);
    left -= VALUE_BYTES;
  }
  return left <= 0;
}

/** What a value takes as JSON, about. */
const VALUE_BYTES = 8;

function unreadable(reason: string): SluiceError {
  return new SluiceError({
    code: "OUTPUT_UNREADABLE",
    message: `The output could not be read: ${reason}.`,
    details: { reason },
  });
}

/** In the words of a transport, which says what it did because of it. */
function unreadableMessage(bytes: number, cause: unknown): SluiceError {
  const { details } = cause as SluiceError;
  return new SluiceError({
    code: "OUTPUT_UNREADABLE",
    message: `a message of ${bytes} bytes could not be read: ${String(details["reason"])}`,
    details: { ...details, bytes },
    cause,
  });
}

/** One thread for every caller; it keeps nothing between texts and ends when none comes for a while. */
const reader = createOutputReader();

/** Whether a text is JSON by the book, as `JSON.parse` judges it. A long one is parsed in a thread, or here where the thread cannot. */
export async function isJson(text: string): Promise<boolean> {
  const here = (): boolean => parseJson(text) !== undefined;
  return text.length < LARGE_BYTES ? here() : await reader.isJson(text).catch(here);
}
