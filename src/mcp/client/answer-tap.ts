import type { CallContext } from "./call-context.ts";
import { scanMessage, type ScannedMessage } from "./scan-message.ts";

/**
 * Reads along with the body of an HTTP answer to a call: a JSON document, or a stream of events of which the last one is the answer. The SDK reads the
 * same bytes; but it neither keeps their text nor says so when a stream ends without an answer, and would wait for its timeout.
 */
export class AnswerTap {
  readonly #isStream: boolean;
  readonly #maxBytes: number;
  readonly #context: CallContext;
  readonly #decoder = new TextDecoder();
  #pieces: string[] = [];
  #data: string[] = [];
  #bytes = 0;
  #isResumable = false;
  #hasAnswer = false;

  constructor(contentType: string | null, maxBytes: number, context: CallContext) {
    this.#isStream = contentType?.startsWith("text/event-stream") ?? false;
    this.#maxBytes = maxBytes;
    this.#context = context;
  }

  push(chunk: Uint8Array): void {
    this.#bytes += chunk.byteLength;
    if (this.#bytes > this.#maxBytes) throw new RangeError(`a message is longer than ${this.#maxBytes} bytes`);
    const text = this.#decoder.decode(chunk, { stream: true });
    this.#pieces.push(text);
    if (this.#isStream && text.includes("\n")) this.#takeLines();
  }

  end(): void {
    if (!this.#isStream) this.#takeMessage(this.#pieces.join(""));
    else if (!this.#hasAnswer && !this.#isResumable) this.#context.onLost(new Error("The stream ended without an answer."));
  }

  fail(error: Error): void {
    if (!this.#hasAnswer && !this.#isResumable) this.#context.onLost(error);
  }

  #takeLines(): void {
    const lines = this.#pieces.join("").split("\n");
    this.#pieces = [lines.pop() ?? ""];
    for (const line of lines) this.#takeLine(line.endsWith("\r") ? line.slice(0, -1) : line);
  }

  #takeLine(line: string): void {
    if (line.startsWith("data:")) this.#data.push(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("id:")) this.#isResumable = true; // the SDK asks for the rest of the stream by this id
    else if (line === "" && this.#data.length > 0) {
      this.#takeMessage(this.#data.join("\n"));
      this.#data = [];
      this.#bytes = 0;
    }
  }

  #takeMessage(text: string): void {
    let scanned: ScannedMessage;
    try {
      scanned = scanMessage(text);
    } catch {
      return; // it is no JSON, and the SDK says so
    }
    if (!scanned.isResponse) return;
    this.#hasAnswer = true;
    this.#context.answerBytes = this.#bytes;
    this.#context.structuredJson = scanned.structuredJson;
  }
}
