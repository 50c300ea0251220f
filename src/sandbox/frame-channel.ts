import type { Readable, Writable } from "node:stream";
import { SandboxLostError } from "../errors/sluice-error.ts";
import type { Frame, FrameChannel } from "./contract.ts";

const MAGIC = 0x534c5501; // "SLU" and the version of the frame layout
const PREFIX_BYTES = 12;

/** What the host accepts from a sandbox. A frame over these is no frame: the stream is hostile or broken. */
const maxHeaderBytes: number = 4 * 1024 * 1024;
const maxBodyBytes: number = 64 * 1024 * 1024;

/**
 * Speaks frames over a byte stream. Reading is pull-based: nothing is read ahead of `receive`, but for what the stream itself buffers,
 * so a sandbox that floods is slowed by its own pipe and not kept in the host's memory.
 */
export function createFrameChannel({ readable, writable }: { readable: Readable; writable: Writable }): FrameChannel {
  const read = createReader(readable);
  let closed = false;
  writable.on("error", () => {}); // a worker that died while being written to is reported by receive() and by the lease

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
    if (prefix.readUInt32BE(0) !== MAGIC) throw notAFrame("it does not start with a frame's mark");
    if (headerBytes > maxHeaderBytes) throw notAFrame(`its header says ${headerBytes} bytes, ${maxHeaderBytes} are allowed`);
    if (bodyBytes > maxBodyBytes) throw notAFrame(`its body says ${bodyBytes} bytes, ${maxBodyBytes} are allowed`);
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

/** A function that reads exactly `size` bytes, or gives null when the stream ended before. */
function createReader(readable: Readable) {
  let wake: (() => void) | null = null;
  let ended = false;
  const signal = (): void => {
    const waiting = wake;
    wake = null;
    waiting?.();
  };
  const end = (): void => {
    ended = true;
    signal();
  };
  readable.on("readable", signal);
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
    hint: "Open a new sandbox; variables of the old one are gone.",
    cause,
  });
}

function notAFrame(why: string): SandboxLostError {
  return new SandboxLostError({ code: "SANDBOX_PROTOCOL", message: `The sandbox sent something that is not a frame: ${why}.` });
}

/** A sandbox that breaks the protocol is ended: what it says next cannot be trusted. */
export function protocolViolation(what: string): SandboxLostError {
  return new SandboxLostError({
    code: "SANDBOX_PROTOCOL",
    message: `it sent ${what}`,
    hint: "The sandbox was ended. Code that writes to the worker's own descriptors causes this.",
  });
}
