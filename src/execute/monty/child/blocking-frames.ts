import { readSync, writeSync } from "node:fs";

const CHANNEL = 3;
const PREFIX_BYTES = 8;

/**
 * Frames over descriptor 3: `u32 header length, u32 body length, header as JSON, body`. Reads and writes block: the child has nothing else to do
 * meanwhile, and it is faster.
 */
export function send(header: Record<string, unknown>, body = ""): void {
  queue(header, body);
  flush();
}

const queued: Buffer[] = [];

/** Leaves with the next frame that is sent. */
export function queue(header: Record<string, unknown>, body = ""): void {
  const head = Buffer.from(JSON.stringify(header));
  const bodyBytes = Buffer.byteLength(body);
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + head.length + bodyBytes);
  frame.writeUInt32BE(head.length, 0);
  frame.writeUInt32BE(bodyBytes, 4);
  head.copy(frame, PREFIX_BYTES);
  frame.write(body, PREFIX_BYTES + head.length);
  queued.push(frame);
}

export function flush(): void {
  if (queued.length === 0) return;
  const bytes = queued.length === 1 ? queued[0]! : Buffer.concat(queued);
  queued.length = 0;
  for (let at = 0; at < bytes.length;) at += writeSync(CHANNEL, bytes, at);
}

/** Most frames are read with one call. What is read is all of one frame: the host sends the next only when it is asked. */
const buffer = Buffer.allocUnsafe(64 * 1024);

/** Null when the host is gone. */
export function receive(): { header: unknown; body: Buffer } | null {
  let count = 0;
  while (count < PREFIX_BYTES) {
    const read = readSync(CHANNEL, buffer, count, buffer.length - count, null);
    if (read === 0) return null;
    count += read;
  }
  const headerBytes = buffer.readUInt32BE(0);
  const size = PREFIX_BYTES + headerBytes + buffer.readUInt32BE(4);
  const frame = size <= buffer.length ? buffer : Buffer.allocUnsafe(size);
  if (frame !== buffer) buffer.copy(frame, 0, 0, count);
  while (count < size) {
    const read = readSync(CHANNEL, frame, count, size - count, null);
    if (read === 0) return null;
    count += read;
  }
  const bodyAt = PREFIX_BYTES + headerBytes;
  return { header: JSON.parse(frame.toString("utf8", PREFIX_BYTES, bodyAt)), body: frame.subarray(bodyAt, size) };
}
