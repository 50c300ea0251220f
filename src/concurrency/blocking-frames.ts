import { readSync, writeSync } from "node:fs";

const PREFIX_BYTES = 4;
const NEWLINE = 0x0a;
const MAX_BYTES_PER_CHARACTER = 3;

/**
 * Frames over a file descriptor: `u32 length`, then a JSON header, a newline and the body. Reads and writes block, which is faster, and the child has
 * nothing else to do. The child runs without a JIT compiler, so each tool call does little work: one string, one write, one read.
 */
export function openBlockingFrames(channel: number) {
  /** Frames that were queued and not written yet. */
  const output = Buffer.allocUnsafe(64 * 1024);
  let outputBytes = 0;
  /** Most frames fit and need one read. A read never returns part of the next frame, because the host sends one frame at a time. */
  const input = Buffer.allocUnsafe(64 * 1024);

  function send(header: Record<string, unknown>, body = ""): void {
    queue(header, body);
    flush();
  }

  /** Writes the frame together with the next frame that is sent. */
  function queue(header: Record<string, unknown>, body = ""): void {
    const text = `${JSON.stringify(header)}\n${body}`;
    const maxBytes = PREFIX_BYTES + text.length * MAX_BYTES_PER_CHARACTER;
    if (maxBytes > output.length - outputBytes) flush();
    if (maxBytes > output.length) {
      const bytes = Buffer.from(text);
      output.writeUInt32BE(bytes.length, 0);
      write(output, PREFIX_BYTES);
      write(bytes, bytes.length);
      return;
    }
    const bytes = output.write(text, outputBytes + PREFIX_BYTES);
    output.writeUInt32BE(bytes, outputBytes);
    outputBytes += PREFIX_BYTES + bytes;
  }

  function flush(): void {
    write(output, outputBytes);
    outputBytes = 0;
  }

  function write(bytes: Buffer, length: number): void {
    for (let at = 0; at < length;) at += writeSync(channel, bytes, at, length - at);
  }

  /** Null if the host has closed the channel. */
  function receive(): { header: unknown; body: Buffer } | null {
    let readBytes = 0;
    while (readBytes < PREFIX_BYTES) {
      const read = readSync(channel, input, readBytes, input.length - readBytes, null);
      if (read === 0) return null;
      readBytes += read;
    }
    const size = PREFIX_BYTES + input.readUInt32BE(0);
    const frame = size <= input.length ? input : Buffer.allocUnsafe(size);
    if (frame !== input) input.copy(frame, 0, 0, readBytes);
    while (readBytes < size) {
      const read = readSync(channel, frame, readBytes, size - readBytes, null);
      if (read === 0) return null;
      readBytes += read;
    }
    const headerEnd = frame.indexOf(NEWLINE, PREFIX_BYTES);
    return { header: JSON.parse(frame.toString("utf8", PREFIX_BYTES, headerEnd)), body: frame.subarray(headerEnd + 1, size) };
  }

  return { send, queue, flush, receive };
}
