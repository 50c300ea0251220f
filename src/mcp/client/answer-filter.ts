import type { LargeMessage, OutputReader } from "../../evidence/reading/create-output-reader.ts";
import { LARGE_BYTES } from "../../evidence/reading/is-large-output.ts";
import { scanMessage, type ScannedMessage } from "../../evidence/reading/scan-message.ts";
import type { CallContext } from "./call-context.ts";
import { EventSplitter } from "./event-splitter.ts";

export interface AnswerFilterOptions {
  readonly contentType: string | null;
  readonly maxBytes: number;
  readonly context: CallContext;
  readonly reader: OutputReader;
}

/**
 * Stands between the body of an HTTP answer to a call and the SDK: a JSON document, or a stream of events of which the last one is the answer. The SDK parses
 * what it gets on the thread that serves everybody, keeps none of its text, and does not say so when a stream ends without an answer. So a large message is
 * read elsewhere, and the SDK gets a small one in its place; of others the text is looked at as it passes.
 */
export class AnswerFilter {
  readonly #isStream: boolean;
  readonly #options: AnswerFilterOptions;
  readonly #events: EventSplitter;
  #document: Uint8Array[] = [];
  #bytes = 0;
  #large: LargeMessage | null = null;
  #isResumable = false;
  #hasAnswer = false;

  constructor(options: AnswerFilterOptions) {
    this.#options = options;
    this.#isStream = options.contentType?.startsWith("text/event-stream") ?? false;
    this.#events = new EventSplitter(options.maxBytes, () => options.reader.openMessage());
  }

  /** What the SDK may have of what has come so far. */
  async push(chunk: Uint8Array): Promise<Uint8Array[]> {
    if (!this.#isStream) return this.#keep(chunk);
    const passed: Uint8Array[] = [];
    for (const event of this.#events.push(chunk)) {
      if (event.hasId) this.#isResumable = true; // the SDK asks for the rest of the stream by this id
      if (event.data !== null) this.#look(event.data, event.bytes);
      passed.push(event.large === null ? event.raw : Buffer.from(`${event.fields}data: ${await this.#readLarge(event.large)}\n\n`));
    }
    return passed;
  }

  async end(): Promise<Uint8Array[]> {
    if (this.#isStream) {
      const rest = this.#events.end();
      if (!this.#hasAnswer && !this.#isResumable) this.#options.context.onLost(new Error("The stream ended without an answer."));
      return rest;
    }
    if (this.#large !== null) return [Buffer.from(await this.#readLarge(this.#large))];
    this.#look(Buffer.concat(this.#document).toString("utf8"), this.#bytes);
    return this.#document;
  }

  fail(error: Error): void {
    this.#large?.drop();
    this.#events.end();
    if (!this.#hasAnswer && !this.#isResumable) this.#options.context.onLost(error);
  }

  #keep(chunk: Uint8Array): [] {
    this.#bytes += chunk.byteLength;
    if (this.#bytes > this.#options.maxBytes) throw new RangeError(`a message is longer than ${this.#options.maxBytes} bytes`);
    if (this.#large === null && this.#bytes >= LARGE_BYTES) {
      this.#large = this.#options.reader.openMessage();
      for (const kept of this.#document) this.#large.push(kept);
      this.#document = [];
    }
    if (this.#large === null) this.#document.push(chunk);
    else this.#large.push(chunk);
    return [];
  }

  /** The text that the SDK gets instead. Only the request that this is the answer to can be answered here, so its id need not be known. */
  async #readLarge(large: LargeMessage): Promise<string> {
    const { context } = this.#options;
    const message = await large.read(context.isToolCall ? "any" : []);
    if (message.kind === "garbage") return message.text;
    if (message.kind === "other") {
      const text = JSON.stringify(message.value);
      this.#look(text, large.bytes);
      return text;
    }
    this.#hasAnswer = true;
    context.answerBytes = large.bytes;
    context.read = message.read;
    return JSON.stringify({ jsonrpc: "2.0", id: message.id, result: message.result });
  }

  #look(text: string, bytes: number): void {
    let scanned: ScannedMessage;
    try {
      scanned = scanMessage(text);
    } catch {
      return; // it is no JSON, and the SDK says so
    }
    if (!scanned.isResponse) return;
    this.#hasAnswer = true;
    this.#options.context.answerBytes = bytes;
    this.#options.context.structuredJson = scanned.structuredJson;
  }
}
