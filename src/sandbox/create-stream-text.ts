import { StringDecoder } from "node:string_decoder";

/** Collects one output stream of a cell or script: passes text on as it arrives, and keeps it for the outcome. */
export interface StreamText {
  add(bytes: Uint8Array, omittedBytes: number): void;
  readonly text: string;
  /** Bytes that the worker cut from the middle. */
  readonly omittedBytes: number;
  readonly receivedBytes: number;
}

export interface StreamTextOptions {
  /** The text to insert where the worker cut something out. Default: nothing. */
  readonly toMark?: (omittedBytes: number) => string;
  readonly onText?: (text: string) => void;
}

export function createStreamText({ toMark = () => "", onText }: StreamTextOptions = {}): StreamText {
  const parts: string[] = [];
  const decoder = new StringDecoder("utf8");
  let omitted = 0;
  let received = 0;

  const push = (text: string): void => {
    if (text === "") return;
    parts.push(text);
    onText?.(text);
  };

  return {
    add(bytes, omittedBytes) {
      received += bytes.length;
      if (omittedBytes > 0) {
        omitted += omittedBytes;
        push(decoder.end());
        push(toMark(omittedBytes));
      }
      push(decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)));
    },
    get text() {
      const rest = decoder.end();
      if (rest !== "") parts.push(rest);
      return parts.join("");
    },
    get omittedBytes() {
      return omitted;
    },
    get receivedBytes() {
      return received;
    },
  };
}
