/** Splits a stream of bytes into lines. Copies each byte once: the SDK joins its buffer at every chunk, which takes minutes for a line of 100 MB. */
export class LineSplitter {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the lines that end in this chunk, without line feeds. Throws RangeError when a line is longer than allowed. */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      this.#append(chunk.subarray(start, end));
      lines.push(this.end());
      start = end + 1;
    }
    if (start < chunk.length) this.#append(chunk.subarray(start));
    return lines;
  }

  /** Returns the rest after the last line feed. */
  end(): Buffer {
    const line = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts, this.#bytes);
    this.#parts = [];
    this.#bytes = 0;
    return line;
  }

  #append(part: Buffer): void {
    this.#bytes += part.length;
    this.#parts.push(part);
    if (this.#bytes <= this.#maxBytes) return;
    this.end();
    throw new RangeError(`a message is longer than ${this.#maxBytes} bytes`);
  }
}

const LINE_FEED = 10;
