import { LARGE_BYTES, type OutputReader } from "../../evidence/reading/create-output-reader.ts";
import { scanMessage, type ScannedMessage } from "../../text/json.ts";
import type { CallContext } from "./call-context.ts";
import { LineSplitter } from "./line-splitter.ts";

export interface AnswerFilterOptions {
  readonly maxMessageBytes: number;
  readonly context: CallContext;
  readonly reader: OutputReader;
}

/**
 * Stands between the HTTP answer to a call and the SDK: a JSON document, or a stream of events of which the last one is the answer. The SDK parses what it
 * gets on the main thread, keeps none of its text, and does not say so when a stream ends without an answer. So a large message is read in a thread, and the
 * SDK gets a small one in its place; of others the text is looked at as it passes.
 */
export function filterAnswer(response: Response, options: AnswerFilterOptions): Response {
  if (response.body === null) return response;
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
  const reader = response.body.getReader();
  const passed = passAnswer(reader, isStream, options);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await passed.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  // What it says of its size and coding was true of the bytes that came.
  const headers = new Headers(response.headers);
  for (const name of ["content-length", "content-encoding"]) headers.delete(name);
  return new Response(body, { status: response.status, statusText: response.statusText, headers });
}

type BodyReader = ReadableStreamDefaultReader<Uint8Array>;

async function* passAnswer(body: BodyReader, isStream: boolean, options: AnswerFilterOptions): AsyncGenerator<Uint8Array> {
  const { maxMessageBytes, context, reader } = options;
  const state = { hasAnswer: false, isResumable: false };
  try {
    if (isStream) yield* passEvents();
    else yield* passDocument();
    if (isStream && !state.hasAnswer && !state.isResumable) context.onLost(new Error("The stream ended without an answer."));
  } catch (error) {
    if (!state.hasAnswer && !state.isResumable) context.onLost(error as Error);
    void body.cancel(error).catch(() => {});
    throw error;
  }

  async function* passDocument(): AsyncGenerator<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of chunksOf(body)) {
      bytes += chunk.length;
      if (bytes > maxMessageBytes) throw new RangeError(`a message is longer than ${maxMessageBytes} bytes`);
      chunks.push(chunk);
    }
    yield (await readMessage(Buffer.concat(chunks))).bytes;
  }

  async function* passEvents(): AsyncGenerator<Uint8Array> {
    const lines = new LineSplitter(maxMessageBytes);
    let event: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of chunksOf(body)) {
      for (const line of lines.push(chunk)) {
        event.push(line);
        bytes += line.length;
        if (bytes > maxMessageBytes) throw new RangeError(`a message is longer than ${maxMessageBytes} bytes`);
        if (!isBlank(line)) continue;
        yield await passEvent(event);
        event = [];
        bytes = 0;
      }
    }
    yield joinLines([...event, lines.end()]).subarray(0, -1);
  }

  async function passEvent(lines: readonly Buffer[]): Promise<Uint8Array> {
    if (lines.some((line) => line.toString("latin1", 0, 3) === "id:")) state.isResumable = true; // the SDK asks for the rest of the stream by this id
    const data = lines.filter(isData).map(dataOf);
    if (data.length === 0) return joinLines(lines);
    const { bytes, isAsSent } = await readMessage(data.length === 1 ? data[0]! : joinLines(data));
    if (isAsSent) return joinLines(lines);
    const fields = lines.filter((line) => !isData(line) && !isBlank(line));
    return Buffer.concat([joinLines(fields), Buffer.from("data: "), bytes, Buffer.from("\n\n")]);
  }

  /** What the SDK gets of a message. Only the request that this answers can be answered here, so its id need not be known. */
  async function readMessage(message: Buffer): Promise<{ bytes: Uint8Array; isAsSent: boolean }> {
    const { length } = message;
    if (length < LARGE_BYTES) return look(message);
    const read = await reader.readMessage(message, context.isToolCall ? "any" : []);
    if (read.kind === "garbage") return { bytes: Buffer.from(read.text), isAsSent: false };
    if (read.kind === "other") return look(Buffer.from(read.bytes.buffer));
    state.hasAnswer = true;
    context.answerBytes = length;
    context.read = read.read;
    return { bytes: Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: read.id, result: read.result })), isAsSent: false };
  }

  function look(message: Buffer): { bytes: Buffer; isAsSent: true } {
    const passed = { bytes: message, isAsSent: true } as const;
    let scanned: ScannedMessage;
    try {
      scanned = scanMessage(message.toString("utf8"));
    } catch {
      return passed; // it is no JSON, and the SDK says so
    }
    if (!scanned.isResponse) return passed;
    state.hasAnswer = true;
    context.answerBytes = message.length;
    context.structuredJson = scanned.structuredJson;
    return passed;
  }
}

async function* chunksOf(body: BodyReader): AsyncGenerator<Buffer> {
  for (;;) {
    const { done, value } = await body.read();
    if (done) return;
    yield Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
}

const SPACE = 32;
const LINE_FEED = Buffer.from("\n");

/** Each with its line feed. */
function joinLines(lines: readonly Buffer[]): Buffer {
  return Buffer.concat(lines.flatMap((line) => [line, LINE_FEED]));
}

function isBlank(line: Buffer): boolean {
  return line.length === 0 || (line.length === 1 && line[0] === 13);
}

function isData(line: Buffer): boolean {
  return line.toString("latin1", 0, 5) === "data:";
}

function dataOf(line: Buffer): Buffer {
  return line.subarray(line[5] === SPACE ? 6 : 5);
}
