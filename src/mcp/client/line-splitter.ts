import { LARGE_BYTES } from "../../evidence/reading/is-large-output.ts";
import type { LargeMessage } from "../../evidence/reading/create-output-reader.ts";

/**
 * Cuts a stream of bytes into lines. Each byte is copied once, whatever the length of its line: joining at every chunk, as the SDK's buffer does, takes
 * minutes for a line of 100 MB. What grows large is handed on while it comes, and never joined here.
 */
export class LineSplitter {
  readonly #maxBytes: number;
  readonly #openLarge: () => LargeMessage;
  #parts: Buffer[] = [];
  #bytes = 0;
  #large: LargeMessage | null = null;

  constructor(maxBytes: number, openLarge: () => LargeMessage) {
    this.#maxBytes = maxBytes;
    this.#openLarge = openLarge;
  }

  /** The lines that this chunk ends. Throws a RangeError when a line is longer than allowed. */
  push(chunk: Buffer): (Buffer | LargeMessage)[] {
    const lines: (Buffer | LargeMessage)[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      this.#keep(chunk.subarray(start, end));
      lines.push(this.#large ?? (this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts, this.#bytes)));
      this.#parts = [];
      this.#bytes = 0;
      this.#large = null;
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    return lines;
  }

  /** No more will come: what is not whole is dropped. */
  end(): void {
    this.#large?.drop();
    this.#large = null;
    this.#parts = [];
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#maxBytes) {
      this.end();
      throw new RangeError(`a message is longer than ${this.#maxBytes} bytes`);
    }
    if (this.#large !== null) return this.#large.push(part);
    this.#parts.push(part);
    if (this.#bytes < LARGE_BYTES) return;
    this.#large = this.#openLarge();
    for (const kept of this.#parts) this.#large.push(kept);
    this.#parts = [];
  }
}

const LINE_FEED = 10;
