import { readSync, writeSync } from "node:fs";

const PREFIX_BYTES = 4;
const NEWLINE = 0x0a;
const MOST_BYTES_A_CHARACTER = 3;

/**
 * Frames over a descriptor: `u32 length`, then a header as JSON, a line break, and the body. Reads and writes block: the child has nothing else to do
 * meanwhile, and it is faster. It runs without a compiler, so what is done for each call of a tool is little: one text, one write, one read.
 */
export function openBlockingFrames(channel: number) {
  const out = Buffer.allocUnsafe(64 * 1024);
  let filled = 0;
  /** Most frames are read with one call. What is read is all of one frame: the host sends the next only when it is asked. */
  const buffer = Buffer.allocUnsafe(64 * 1024);

  function send(header: Record<string, unknown>, body = ""): void {
    queue(header, body);
    flush();
  }

  /** Leaves with the next frame that is sent. */
  function queue(header: Record<string, unknown>, body = ""): void {
    const text = `${JSON.stringify(header)}\n${body}`;
    const most = PREFIX_BYTES + text.length * MOST_BYTES_A_CHARACTER;
    if (most > out.length - filled) flush();
    if (most > out.length) {
      const bytes = Buffer.from(text);
      out.writeUInt32BE(bytes.length, 0);
      write(out, PREFIX_BYTES);
      write(bytes, bytes.length);
      return;
    }
    const bytes = out.write(text, filled + PREFIX_BYTES);
    out.writeUInt32BE(bytes, filled);
    filled += PREFIX_BYTES + bytes;
  }

  function flush(): void {
    write(out, filled);
    filled = 0;
  }

  function write(bytes: Buffer, length: number): void {
    for (let at = 0; at < length;) at += writeSync(channel, bytes, at, length - at);
  }

  /** Null when the host is gone. */
  function receive(): { header: unknown; body: Buffer } | null {
    let count = 0;
    while (count < PREFIX_BYTES) {
      const read = readSync(channel, buffer, count, buffer.length - count, null);
      if (read === 0) return null;
      count += read;
    }
    const size = PREFIX_BYTES + buffer.readUInt32BE(0);
    const frame = size <= buffer.length ? buffer : Buffer.allocUnsafe(size);
    if (frame !== buffer) buffer.copy(frame, 0, 0, count);
    while (count < size) {
      const read = readSync(channel, frame, count, size - count, null);
      if (read === 0) return null;
      count += read;
    }
    const headerEnd = frame.indexOf(NEWLINE, PREFIX_BYTES);
    return { header: JSON.parse(frame.toString("utf8", PREFIX_BYTES, headerEnd)), body: frame.subarray(headerEnd + 1, size) };
  }

  return { send, queue, flush, receive };
}
