import { StringDecoder } from "node:string_decoder";

/** Collects one stream of a cell: live for whoever listens, and whole (but for what the worker cut from its middle) for the outcome. */
export interface StreamText {
  add(bytes: Uint8Array, omittedBytes: number): void;
  readonly text: string;
  readonly omittedBytes: number;
  /** Bytes received. The worker cuts to the limit; a sandbox that sends more is hostile. */
  readonly receivedBytes: number;
}

export function createStreamText({
  name,
  limitBytes,
  onText,
}: {
  name: "stdout" | "stderr";
  limitBytes: number;
  onText?: ((text: string) => void) | undefined;
}): StreamText {
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
        push(`\n… [${omittedBytes} bytes of ${name} omitted here; the limit is ${limitBytes} bytes] …\n`);
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
