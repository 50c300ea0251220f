import type { Readable, Writable } from "node:stream";
import { SandboxLostError } from "../errors/sluice-error.ts";
import type { Frame, FrameChannel } from "./contract.ts";

const MAGIC = 0x534c5501; // "SLU" and the version of the frame layout
const PREFIX_BYTES = 12;

/**
 * Limits for frames from a sandbox, including the prefix. A larger frame means that the stream is hostile or broken. Larger contents travel in `chunk`
 * frames, which `ArrivingContents` counts.
 */
const MAX_FRAME_BYTES = 1024 * 1024;
const MAX_HEADER_BYTES = 256 * 1024;

/**
 * Sends and receives frames over a byte stream. The stream is read only during `receive`, so a sandbox that sends too much blocks on its pipe instead
 * of filling the host's memory.
 */
export function createFrameChannel({ readable, writable }: { readable: Readable; writable: Writable }): FrameChannel {
  const read = createReader(readable);
  let closed = false;
  writable.on("error", () => {}); // receive() and the lease report a worker that died

  async function send(header: Frame["header"], body: Uint8Array = new Uint8Array(0)): Promise<void> {
    if (closed || writable.destroyed) throw channelClosed();
    const head = Buffer.from(JSON.stringify(header));
    const prefix = Buffer.alloc(PREFIX_BYTES);
    prefix.writeUInt32BE(MAGIC, 0);
    prefix.writeUInt32BE(head.length, 4);
    prefix.writeUInt32BE(body.length, 8);
    await new Promise<void>((resolve, reject) => {
      writable.cork();
      writable.write(prefix);
      const settle = (error?: Error | null): void => (error ? reject(channelClosed(error)) : resolve());
      if (body.length === 0) writable.write(head, settle);
      else {
        writable.write(head);
        writable.write(body, settle);
      }
      writable.uncork();
    });
  }

  async function receive(): Promise<Frame | null> {
    const prefix = await read(PREFIX_BYTES);
    if (prefix === null) return null;
    const headerBytes = prefix.readUInt32BE(4);
    const bodyBytes = prefix.readUInt32BE(8);
    if (prefix.readUInt32BE(0) !== MAGIC) throw notAFrame("it does not start with the magic number of a frame");
    if (headerBytes > MAX_HEADER_BYTES) throw notAFrame(`its header has ${headerBytes} bytes, the limit is ${MAX_HEADER_BYTES}`);
    const frameBytes = PREFIX_BYTES + headerBytes + bodyBytes;
    if (frameBytes > MAX_FRAME_BYTES) throw notAFrame(`it has ${frameBytes} bytes, the limit is ${MAX_FRAME_BYTES}`);
    const head = await read(headerBytes);
    const body = bodyBytes === 0 ? Buffer.alloc(0) : await read(bodyBytes);
    if (head === null || body === null) return null;
    return { header: parseHeader(head), body };
  }

  function close(): void {
    closed = true;
    writable.destroy();
    readable.destroy();
  }

  return { send, receive, close };
}

function parseHeader(bytes: Buffer): Frame["header"] {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    throw notAFrame("its header is not JSON");
  }
  if (typeof value !== "object" || value === null || !("type" in value) || typeof value.type !== "string") {
    throw notAFrame("its header has no type");
  }
  return value as Frame["header"];
}

/** Returns a function that reads exactly `size` bytes, or null if the stream ends first. */
function createReader(readable: Readable) {
  let wake: (() => void) | null = null;
  let ended = false;
  const wakeReader = (): void => {
    const waiting = wake;
    wake = null;
    waiting?.();
  };
  const end = (): void => {
    ended = true;
    wakeReader();
  };
  readable.on("readable", wakeReader);
  readable.on("end", end);
  readable.on("close", end);
  readable.on("error", end);

  return async (size: number): Promise<Buffer | null> => {
    if (size === 0) return Buffer.alloc(0);
    const parts: Buffer[] = [];
    let missing = size;
    while (missing > 0) {
      const available = Math.min(missing, readable.readableLength);
      const chunk = (available > 0 ? readable.read(available) : readable.read(0)) as Buffer | null;
      if (chunk !== null && chunk.length > 0) {
        parts.push(chunk);
        missing -= chunk.length;
      } else if (ended) {
        return null;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts, size);
  };
}

function channelClosed(cause?: Error): SandboxLostError {
  return new SandboxLostError({
    code: "SANDBOX_LOST",
    message: "The channel to the sandbox is closed.",
    hint: "Open a new sandbox. The variables of the old one are lost.",
    cause,
  });
}

function notAFrame(reason: string): SandboxLostError {
  return protocolViolation(`something that is not a frame: ${reason}`);
}

/** The error for a sandbox that breaks the protocol. It is killed, because nothing it sends after that can be trusted. */
export function protocolViolation(sent: string): SandboxLostError {
  return new SandboxLostError({ code: "SANDBOX_PROTOCOL", message: `The sandbox sent ${sent}.`, details: { sent } });
}
