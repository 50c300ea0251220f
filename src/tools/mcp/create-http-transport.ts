import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { LARGE_BYTES, type OutputReader } from "../../evidence/reading/create-output-reader.ts";
import { scanMessage, type ScannedMessage } from "../../text/json.ts";
import type { RequestContext, RequestContexts } from "./backend-connection.ts";
import { LineSplitter } from "./line-splitter.ts";

export interface HttpTransportOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly maxMessageBytes: number;
  readonly contexts: RequestContexts;
  readonly reader: OutputReader;
}

/** Streamable HTTP. Does not follow redirects to another origin, so that headers reach only the server they are meant for. */
export function createHttpTransport(options: HttpTransportOptions): StreamableHTTPClientTransport {
  const { url, headers, maxMessageBytes, contexts, reader } = options;
  return new StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: async (target, init) => {
      const context = contexts.getStore();
      if (context === undefined) return fetch(target, init);
      const response = await fetch(target, { ...init, headers: withCallHeaders(init?.headers, context) });
      if (response.ok) return filterAnswer(response, { maxMessageBytes, context, reader });
      context.status = response.status;
      context.retryAfter = response.headers.get("retry-after");
      return response;
    },
  });
}

/** Headers of the call override those of the server's entry, including `Authorization`. Headers of the protocol cannot be overridden. */
function withCallHeaders(base: ConstructorParameters<typeof Headers>[0], context: RequestContext): Headers {
  const headers = new Headers(base);
  for (const [name, value] of Object.entries(context.headers)) if (!protocolHeaders.test(name)) headers.set(name, value);
  return headers;
}

const protocolHeaders = /^(?:accept|connection|content-length|content-type|host|last-event-id|transfer-encoding|mcp-.*)$/i;

export interface AnswerFilterOptions extends Pick<HttpTransportOptions, "maxMessageBytes" | "reader"> {
  readonly context: RequestContext;
}

/**
 * Filters the response of a request before the SDK reads it: a JSON document, or a stream of events that ends with the answer. The SDK parses messages on
 * the main thread, discards their text, and does not report a stream that ends without an answer. So the filter reads a large message in a thread and passes
 * on a small one instead, notes the exact text of `structuredContent` of the others, and reports a lost answer to the context.
 */
export function filterAnswer(response: Response, options: AnswerFilterOptions): Response {
  if (response.body === null) return response;
  const isEventStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
  const filter = new AnswerFilter(response.body.getReader(), options);
  const output = filter.run(isEventStream);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await output.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => filter.cancel(reason),
  });
  // These headers describe the original body, not the filtered one.
  const headers = new Headers(response.headers);
  for (const name of ["content-length", "content-encoding"]) headers.delete(name);
  return new Response(body, { status: response.status, statusText: response.statusText, headers });
}

interface FilteredMessage {
  readonly bytes: Uint8Array;
  readonly isUnchanged: boolean;
}

class AnswerFilter {
  readonly #body: ReadableStreamDefaultReader<Uint8Array>;
  readonly #options: AnswerFilterOptions;
  #hasAnswer = false;
  #isResumable = false;

  constructor(body: ReadableStreamDefaultReader<Uint8Array>, options: AnswerFilterOptions) {
    this.#body = body;
    this.#options = options;
  }

  async *run(isEventStream: boolean): AsyncGenerator<Uint8Array> {
    try {
      yield* isEventStream ? this.#filterEvents() : this.#filterDocument();
      if (isEventStream) this.#reportLoss(new Error("The stream ended without an answer."));
    } catch (error) {
      this.#reportLoss(error as Error);
      void this.cancel(error).catch(() => {});
      throw error;
    }
  }

  cancel(reason: unknown): Promise<void> {
    return this.#body.cancel(reason);
  }

  #reportLoss(error: Error): void {
    if (!this.#hasAnswer && !this.#isResumable) this.#options.context.onLost(error);
  }

  async *#filterDocument(): AsyncGenerator<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of this.#readChunks()) {
      bytes += chunk.length;
      this.#checkLength(bytes);
      chunks.push(chunk);
    }
    yield (await this.#filterMessage(Buffer.concat(chunks))).bytes;
  }

  async *#filterEvents(): AsyncGenerator<Uint8Array> {
    const lines = new LineSplitter(this.#options.maxMessageBytes);
    let event: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of this.#readChunks()) {
      for (const line of lines.push(chunk)) {
        event.push(line);
        bytes += line.length;
        this.#checkLength(bytes);
        if (!isBlank(line)) continue;
        yield await this.#filterEvent(event);
        event = [];
        bytes = 0;
      }
    }
    yield joinLines([...event, lines.end()]).subarray(0, -1);
  }

  async *#readChunks(): AsyncGenerator<Buffer> {
    for (;;) {
      const { done, value } = await this.#body.read();
      if (done) return;
      yield Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
  }

  #checkLength(bytes: number): void {
    const { maxMessageBytes } = this.#options;
    if (bytes > maxMessageBytes) throw new RangeError(`a message is longer than ${maxMessageBytes} bytes`);
  }

  async #filterEvent(lines: readonly Buffer[]): Promise<Uint8Array> {
    // With an event id, the SDK can ask for the rest of an interrupted stream.
    if (lines.some((line) => line.toString("latin1", 0, 3) === "id:")) this.#isResumable = true;
    const data = lines.filter(isData).map(toDataValue);
    if (data.length === 0) return joinLines(lines);
    const { bytes, isUnchanged } = await this.#filterMessage(data.length === 1 ? data[0]! : joinLines(data));
    if (isUnchanged) return joinLines(lines);
    const fields = lines.filter((line) => !isData(line) && !isBlank(line));
    return Buffer.concat([joinLines(fields), Buffer.from("data: "), bytes, Buffer.from("\n\n")]);
  }

  /** Does not check the id of an answer: this response can only answer the request of its context. */
  async #filterMessage(message: Buffer): Promise<FilteredMessage> {
    const { context, reader } = this.#options;
    const { length } = message;
    if (length < LARGE_BYTES) return this.#inspectMessage(message);
    const large = await reader.readMessage(message, context.isToolCall ? "any" : []);
    if (large.kind === "garbage") return { bytes: Buffer.from(large.text), isUnchanged: false };
    if (large.kind === "other") return this.#inspectMessage(Buffer.from(large.bytes.buffer));
    this.#hasAnswer = true;
    context.answerBytes = length;
    context.read = large.read;
    return { bytes: Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: large.id, result: large.result })), isUnchanged: false };
  }

  #inspectMessage(message: Buffer): FilteredMessage {
    const unchanged = { bytes: message, isUnchanged: true };
    let scanned: ScannedMessage;
    try {
      scanned = scanMessage(message.toString("utf8"));
    } catch {
      return unchanged; // not JSON: the SDK reports it
    }
    if (!scanned.isResponse) return unchanged;
    this.#hasAnswer = true;
    this.#options.context.answerBytes = message.length;
    this.#options.context.structuredJson = scanned.structuredJson;
    return unchanged;
  }
}

const SPACE = 32;
const LINE_FEED = Buffer.from("\n");

/** Ends every line with a line feed. */
function joinLines(lines: readonly Buffer[]): Buffer {
  return Buffer.concat(lines.flatMap((line) => [line, LINE_FEED]));
}

function isBlank(line: Buffer): boolean {
  return line.length === 0 || (line.length === 1 && line[0] === 13);
}

function isData(line: Buffer): boolean {
  return line.toString("latin1", 0, 5) === "data:";
}

function toDataValue(line: Buffer): Buffer {
  return line.subarray(line[5] === SPACE ? 6 : 5);
}
