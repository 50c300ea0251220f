import type { LargeMessage } from "../../evidence/reading/create-output-reader.ts";
import { LARGE_BYTES } from "../../evidence/reading/is-large-output.ts";

export interface ServerEvent {
  /** As it came, to be passed on; nothing of one that grew large. */
  readonly raw: Uint8Array;
  readonly bytes: number;
  /** Null when there is none, or when it grew large. */
  readonly data: string | null;
  readonly hasId: boolean;
  /** Its other lines. */
  readonly fields: string;
  /** Its data, when that is large. */
  readonly large: LargeMessage | null;
}

/** Cuts a stream of server-sent events into events. Data that grows large is handed on while it comes, and never joined here. */
export class EventSplitter {
  readonly #maxBytes: number;
  readonly #openLarge: () => LargeMessage;
  #event = newEvent();
  #line: Uint8Array[] = [];
  /** The line that comes is data of a large message, and its first bytes have gone there. */
  #isLargeLine = false;

  constructor(maxBytes: number, openLarge: () => LargeMessage) {
    this.#maxBytes = maxBytes;
    this.#openLarge = openLarge;
  }

  /** The events that this chunk ends. Throws a RangeError when one is longer than allowed. */
  push(chunk: Uint8Array): ServerEvent[] {
    const events: ServerEvent[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      this.#add(chunk.subarray(start, end + 1));
      const event = this.#endLine();
      if (event !== null) events.push(event);
      start = end + 1;
    }
    if (start < chunk.length) this.#add(chunk.subarray(start));
    return events;
  }

  /** No more will come. Gives what is left of an event that is not whole. */
  end(): Uint8Array[] {
    const { large, raw } = this.#event;
    const rest = large === null ? [...raw, ...this.#line] : [];
    large?.drop();
    this.#event = newEvent();
    this.#line = [];
    return rest;
  }

  #add(part: Uint8Array): void {
    const event = this.#event;
    event.bytes += part.length;
    if (event.bytes > this.#maxBytes) throw new RangeError(`a message is longer than ${this.#maxBytes} bytes`);
    if (this.#isLargeLine) return event.large!.push(part);
    this.#line.push(part);
    if (event.bytes >= LARGE_BYTES) this.#grow();
  }

  /** Only data may be large; other lines are kept until they are over the limit. */
  #grow(): void {
    const line = Buffer.concat(this.#line);
    if (!isData(line)) return;
    const event = this.#event;
    event.large ??= this.#openLarge();
    for (const text of event.data) event.large.push(Buffer.from(`${text}\n`));
    event.large.push(dataOf(line));
    event.data = [];
    event.raw = [];
    this.#line = [];
    this.#isLargeLine = true;
  }

  #endLine(): ServerEvent | null {
    const event = this.#event;
    if (this.#isLargeLine) {
      this.#isLargeLine = false; // with its line break, which stands between it and a further line
      return null;
    }
    const bytes = Buffer.concat(this.#line);
    this.#line = [];
    if (event.large === null) event.raw.push(bytes);
    const line = bytes.toString("utf8").replace(/\r?\n$/, "");
    if (line === "") return this.#finish();
    if (isData(bytes)) {
      const text = dataOf(Buffer.from(line)).toString("utf8");
      if (event.large === null) event.data.push(text);
      else event.large.push(Buffer.from(`${text}\n`));
      return null;
    }
    event.fields += `${line}\n`;
    if (line.startsWith("id:")) event.hasId = true;
    return null;
  }

  #finish(): ServerEvent {
    const { raw, data, ...event } = this.#event;
    this.#event = newEvent();
    return { ...event, raw: Buffer.concat(raw), data: data.length === 0 ? null : data.join("\n") };
  }
}

const LINE_FEED = 10;
const SPACE = 32;

function newEvent(): { raw: Uint8Array[]; bytes: number; data: string[]; hasId: boolean; fields: string; large: LargeMessage | null } {
  return { raw: [], bytes: 0, data: [], hasId: false, fields: "", large: null };
}

function isData(line: Buffer): boolean {
  return line.toString("latin1", 0, 5) === "data:";
}

function dataOf(line: Buffer): Buffer {
  return line.subarray(line[5] === SPACE ? 6 : 5);
}
