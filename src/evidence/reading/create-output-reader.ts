import { totalmem } from "node:os";
import { join } from "node:path";
import { WorkerThread, type WorkerFailure } from "../../concurrency/worker-thread.ts";
import { SluiceError } from "../../errors/sluice-error.ts";
import { parseJson, isRecord } from "../../text/json.ts";
import type { CellResult, NamedData, ToolOutput } from "../evidence-store.ts";
import { isMcpResult } from "../read-tool-output.ts";
import { ReadOutput } from "../output-part.ts";
import { toJsonTextInSlices } from "../to-json-text.ts";
import { rowsAt, type RowsAt, type RowsQuestion } from "../rows-at.ts";
import type { CallIds, MessageId, ReadingAnswer, ReadingRequest, ReadMessage } from "./read-output-process.ts";

/**
 * Reads large outputs in a worker thread, so that the main thread is not blocked. Small outputs are left to the caller. The thread starts with the first
 * large output and ends when idle. Rejects with OUTPUT_UNREADABLE, for example if an output needs too much memory.
 */
export interface OutputReader {
  /** Returns the same output, with `read` set if it is large. */
  readOutput(output: ToolOutput): Promise<ToolOutput>;
  /** Returns null if the result is small. */
  readResult(result: Pick<CellResult, "json">): Promise<ReadOutput | null>;
  /** Returns null if the data is small. */
  readData(data: NamedData): Promise<ReadOutput | null>;
  readRows(json: Uint8Array, question: RowsQuestion): Promise<RowsAt>;
  /** Reads a large JSON-RPC message. Transfers its buffer, which cannot be used afterwards; a message of kind `other` returns the bytes. */
  readMessage(bytes: Buffer, callIds: CallIds): Promise<LargeMessage>;
  isJson(text: string): Promise<boolean>;
  /** Stops the thread and rejects pending reads. Idempotent. */
  close(): Promise<void>;
}

/** A large message after reading. The parts of an answer are in `read`. */
export type LargeMessage =
  | Exclude<ReadMessage, { kind: "answer" }>
  | { readonly kind: "answer"; readonly id: MessageId; readonly result: Readonly<Record<string, unknown>>; readonly read: ReadOutput };

export interface OutputReaderOptions {
  /** Heap limit of the thread. Default: half of the memory, at most 8 GB. */
  readonly heapMegabytes?: number;
}

/** Outputs of this size or more are read in the thread. Smaller ones take a few milliseconds, less than starting the thread. */
export const LARGE_BYTES: number = 512 * 1024;

export function createOutputReader({ heapMegabytes }: OutputReaderOptions = {}): OutputReader {
  const thread = new WorkerThread<ReadingRequest, ReadingAnswer>({
    program: join(import.meta.dirname, "read-output-process"),
    resourceLimits: () => ({ stackSizeMb: 4, maxOldGenerationSizeMb: heapMegabytes ?? defaultHeapMegabytes() }),
    idleMs: 10_000,
  });

  async function ask<Kind extends ReadingAnswer["kind"]>(kind: Kind, request: ReadingRequest, bytes?: Uint8Array<ArrayBuffer>) {
    const unreadable = kind === "message" ? unreadableMessage(bytes!.length) : unreadableOutput;
    const answer = await thread.ask(request, bytes === undefined ? [] : [bytes.buffer]).catch((error: WorkerFailure) => {
      throw unreadable(error.reason === "closed" ? "the reader was closed" : error.message);
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
      return await readParts({ kind: "data", data: { format, bytes: own, mimeType } }, own);
    },
    async readRows(json, question) {
      if (json.length < LARGE_BYTES) return rowsAt(parseJson(json), question);
      const own = Uint8Array.from(json);
      return (await ask("rows", { kind: "rows", bytes: own, question }, own)).found;
    },
    async readMessage(bytes, callIds) {
      const own = bytes.length === bytes.buffer.byteLength ? (bytes as Uint8Array<ArrayBuffer>) : Uint8Array.from(bytes);
      const { message } = await ask("message", { kind: "message", bytes: own, callIds }, own);
      if (message.kind !== "answer") return message;
      const { parts, ...answer } = message;
      return { ...answer, read: new ReadOutput(parts) };
    },
    isJson: async (text) => (await ask("json", { kind: "json", text })).isJson,
    close: () => thread.close(),
  };
}

function defaultHeapMegabytes(): number {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return Math.floor(Math.min(8192, memory / 2 / 1024 ** 2));
}

/** Writes parsed values as JSON here: copying them to the thread would take as long. */
async function toRequest(given: ToolOutput): Promise<Omit<Extract<ReadingRequest, { kind: "output" }>, "kind">> {
  const { tool: _tool, arguments: _arguments, ...output } = given;
  if (isValue(given)) {
    const { text, precisionLoss } = await toJsonTextInSlices(given.output);
    return { output: { output: text }, precisionLoss };
  }
  if (!isRecord(given.output) || given.output["structuredContent"] === undefined) return { output };
  const { structuredContent, ...others } = given.output;
  const { text, precisionLoss } =
    given.structuredJson === undefined
      ? await toJsonTextInSlices(structuredContent)
      : { text: given.structuredJson, precisionLoss: undefined };
  return { output: { output: others, as: "mcp", structuredJson: text }, precisionLoss };
}

/** Neither text nor bytes nor an MCP result. */
function isValue({ output, as }: ToolOutput): boolean {
  if (typeof output !== "object" || output === null || output instanceof Uint8Array) return false;
  return as === "value" || (as === undefined && !isMcpResult(output));
}

/** Estimates the size from bytes, characters and the number of values. Stops at the limit. */
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

/** Rough size of one value as JSON. */
const VALUE_BYTES = 8;

function unreadableOutput(reason: string): SluiceError {
  return new SluiceError({ code: "OUTPUT_UNREADABLE", message: `The output could not be read: ${reason}.`, details: { reason } });
}

/** Without a capital letter and period, because a transport inserts it into its own sentence. */
function unreadableMessage(bytes: number): (reason: string) => SluiceError {
  const start = `a message of ${bytes} bytes could not be read`;
  return (reason) => new SluiceError({ code: "OUTPUT_UNREADABLE", message: `${start}: ${reason}`, details: { reason, bytes } });
}

/** Shared by all callers. Its thread keeps no state between texts and ends when idle. */
const reader = createOutputReader();

/** Whether `JSON.parse` accepts the text. Parses a long text in a worker thread, and on the main thread if that fails. */
export async function isJson(text: string): Promise<boolean> {
  const parseHere = (): boolean => parseJson(text) !== undefined;
  return text.length < LARGE_BYTES ? parseHere() : await reader.isJson(text).catch(parseHere);
}
