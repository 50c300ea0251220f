import { StringDecoder } from "node:string_decoder";

/** What a script printed: the worker cuts it from the middle, and says how much is missing. */
export interface PrintText {
  add(bytes: Uint8Array, omittedBytes: number): void;
  /** All of it; ask once, at the end. */
  finish(): string;
  readonly omittedBytes: number;
  /** Of what came. The worker keeps to the limit; a sandbox that sends more is hostile. */
  readonly receivedBytes: number;
}

export function createPrintText(): PrintText {
  const parts: string[] = [];
  const decoder = new StringDecoder("utf8");
  let omitted = 0;
  let received = 0;
  return {
    add(bytes, omittedBytes) {
      received += bytes.length;
      if (omittedBytes > 0) {
        omitted += omittedBytes;
        parts.push(decoder.end());
      }
      parts.push(decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)));
    },
    finish: () => parts.join("") + decoder.end(),
    get omittedBytes() {
      return omitted;
    },
    get receivedBytes() {
      return received;
    },
  };
}
