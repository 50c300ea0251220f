import type { Readable } from "node:stream";

/** What a child may send. All of it is untrusted: a frame that is not exactly so ends the child. */
export type ChildFrame =
  | { readonly type: "ready" | "wait" }
  | { readonly type: "call"; readonly id: number; readonly name: string; readonly params: string }
  | { readonly type: "print"; readonly text: string }
  | { readonly type: "tail"; readonly omittedBytes: number; readonly text: string }
  | { readonly type: "done"; readonly header: Readonly<Record<string, unknown>>; readonly body: string };

/** Frames are as `openBlockingFrames` says. */
const PREFIX_BYTES = 4;
const MAX_HEADER_BYTES = 256 * 1024;

class ChildFrameError extends Error {}

/** Calls back with each frame; throws nothing, but gives what is no frame to `onBroken`, once, and reads no further. */
export function readChildFrames(
  readable: Readable,
  {
    maxBodyBytes,
    onFrame,
    onBroken,
  }: { maxBodyBytes: () => number; onFrame: (frame: ChildFrame) => void; onBroken: (why: string) => void },
): void {
  let chunks: Buffer[] = [];
  let buffered = 0;
  let wanted = PREFIX_BYTES;
  let broken = false;

  readable.on("data", (chunk: Buffer) => {
    if (broken) return;
    chunks.push(chunk);
    buffered += chunk.length;
    try {
      while (buffered >= wanted) next();
    } catch (error) {
      broken = true;
      chunks = [];
      onBroken((error as Error).message);
    }
  });

  function next(): void {
    const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, buffered);
    chunks = [bytes];
    const length = bytes.readUInt32BE(0);
    if (length > MAX_HEADER_BYTES + maxBodyBytes()) throw new ChildFrameError(`a frame of ${length} bytes`);
    wanted = PREFIX_BYTES + length;
    if (buffered < wanted) return;
    const frame = toFrame(bytes.toString("utf8", PREFIX_BYTES, wanted));
    const rest = bytes.subarray(wanted);
    chunks = rest.length === 0 ? [] : [rest];
    buffered = rest.length;
    wanted = PREFIX_BYTES;
    onFrame(frame);
  }
}

export interface ReplyItem {
  readonly id: number;
  readonly ok: boolean;
  /** Bytes are UTF-8. */
  readonly text: string | Uint8Array;
}

/** In one piece, unless it is large: then its parts are not copied once more. */
export type FrameBytes = readonly Uint8Array[];

const WHOLE_BYTES = 64 * 1024;

export function toRunFrame(header: Readonly<Record<string, unknown>>, code: string): FrameBytes {
  return toBytes({ type: "run", ...header }, [Buffer.from(code)]);
}

export function toRepliesFrame(items: readonly ReplyItem[]): FrameBytes {
  const bodies = items.map(({ text }) => (typeof text === "string" ? Buffer.from(text) : text));
  return toBytes({ type: "replies", items: items.map(({ id, ok }, index) => [id, ok, bodies[index]!.length]) }, bodies);
}

/** Headers are ASCII. */
function toBytes(header: unknown, bodies: readonly Uint8Array[]): FrameBytes {
  const head = `${JSON.stringify(header)}\n`;
  const bodyBytes = bodies.reduce((sum, { length }) => sum + length, 0);
  const isWhole = bodyBytes <= WHOLE_BYTES;
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + head.length + (isWhole ? bodyBytes : 0));
  bytes.writeUInt32BE(head.length + bodyBytes, 0);
  let at = PREFIX_BYTES + bytes.write(head, PREFIX_BYTES, "latin1");
  if (!isWhole) return [bytes, ...bodies];
  for (const body of bodies) {
    bytes.set(body, at);
    at += body.length;
  }
  return [bytes];
}

function toFrame(text: string): ChildFrame {
  const end = text.indexOf("\n");
  if (end === -1) throw new ChildFrameError("a frame without a header");
  const header: unknown = JSON.parse(text.slice(0, end));
  if (typeof header !== "object" || header === null || Array.isArray(header)) throw new ChildFrameError("a header that is no object");
  const fields = header as Record<string, unknown>;
  const type = fields["type"];
  switch (type) {
    case "ready":
    case "wait":
      return { type };
    case "call":
      if (!isCount(fields["id"]) || typeof fields["name"] !== "string") throw new ChildFrameError("a call without id and name");
      return { type, id: fields["id"], name: fields["name"], params: text.slice(end + 1) };
    case "print":
      return { type, text: text.slice(end + 1) };
    case "tail":
      if (!isCount(fields["omittedBytes"])) throw new ChildFrameError("prints without their count");
      return { type, omittedBytes: fields["omittedBytes"], text: text.slice(end + 1) };
    case "done":
      return { type, header: fields, body: text.slice(end + 1) };
    default:
      throw new ChildFrameError("a frame of no known type");
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
