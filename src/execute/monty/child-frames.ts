import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { z } from "zod";
import type { EngineEnd, ExecuteLimits } from "../engine.ts";

/** A frame from a child. Children are untrusted: any other frame kills the child. */
export type ChildFrame =
  | { readonly type: "ready" | "wait" }
  | { readonly type: "call"; readonly id: number; readonly name: string; readonly params: string }
  | { readonly type: "print"; readonly text: string }
  | { readonly type: "tail"; readonly omittedBytes: number; readonly text: string }
  | { readonly type: "done"; readonly header: Readonly<Record<string, unknown>>; readonly body: string };

/** The format of frames is described at `openBlockingFrames`. */
const PREFIX_BYTES = 4;
const MAX_HEADER_BYTES = 256 * 1024;

export interface ReadChildFramesOptions {
  readonly maxBodyBytes: () => number;
  readonly onFrame: (frame: ChildFrame) => void;
  /** Called once, for the first invalid frame. Nothing is read after it. */
  readonly onInvalid: (what: string) => void;
}

/** Parses the frames of a child and calls back for each. Never throws. */
export function readChildFrames(readable: Readable, { maxBodyBytes, onFrame, onInvalid }: ReadChildFramesOptions): void {
  let chunks: Buffer[] = [];
  let bufferedBytes = 0;
  let neededBytes = PREFIX_BYTES;
  let isInvalid = false;

  readable.on("data", (chunk: Buffer) => {
    if (isInvalid) return;
    chunks.push(chunk);
    bufferedBytes += chunk.length;
    try {
      while (bufferedBytes >= neededBytes) readNext();
    } catch (error) {
      isInvalid = true;
      chunks = [];
      onInvalid((error as Error).message);
    }
  });

  function readNext(): void {
    const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bufferedBytes);
    chunks = [bytes];
    const length = bytes.readUInt32BE(0);
    if (length > MAX_HEADER_BYTES + maxBodyBytes()) throw new Error(`a frame of ${length} bytes`);
    neededBytes = PREFIX_BYTES + length;
    if (bufferedBytes < neededBytes) return;
    const frame = toFrame(bytes.toString("utf8", PREFIX_BYTES, neededBytes));
    const rest = bytes.subarray(neededBytes);
    chunks = rest.length === 0 ? [] : [rest];
    bufferedBytes = rest.length;
    neededBytes = PREFIX_BYTES;
    onFrame(frame);
  }
}

function toFrame(text: string): ChildFrame {
  const end = text.indexOf("\n");
  if (end === -1) throw new Error("a frame without a header");
  const header: unknown = JSON.parse(text.slice(0, end));
  if (typeof header !== "object" || header === null || Array.isArray(header)) throw new Error("a header that is not an object");
  const fields = header as Record<string, unknown>;
  const body = text.slice(end + 1);
  const type = fields["type"];
  switch (type) {
    case "ready":
    case "wait":
      return { type };
    case "call":
      if (!isCount(fields["id"]) || typeof fields["name"] !== "string") throw new Error("a call without id and name");
      return { type, id: fields["id"], name: fields["name"], params: body };
    case "print":
      return { type, text: body };
    case "tail":
      if (!isCount(fields["omittedBytes"])) throw new Error("prints without their count");
      return { type, omittedBytes: fields["omittedBytes"], text: body };
    case "done":
      return { type, header: fields, body };
    default:
      throw new Error("a frame of unknown type");
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** The bytes of one frame: a single buffer if the frame is small; large bodies are not copied into it. */
export type FrameBytes = readonly Uint8Array[];

const MAX_COPIED_BYTES = 64 * 1024;

/** Python code in front of every script, which defines `call_tool`. */
const prelude = readFileSync(join(import.meta.dirname, "..", "..", "..", "python", "monty_prelude.py"), "utf8");
const preludeLines = prelude.split("\n").length - 1;

export function toRunFrame(header: Readonly<Record<string, unknown>>, code: string): FrameBytes {
  return toBytes({ type: "run", ...header }, [Buffer.from(prelude + code)]);
}

export interface ReplyItem {
  readonly id: number;
  readonly ok: boolean;
  /** Bytes are UTF-8. */
  readonly text: string | Uint8Array;
}

export function toRepliesFrame(items: readonly ReplyItem[]): FrameBytes {
  const bodies = items.map(({ text }) => (typeof text === "string" ? Buffer.from(text) : text));
  return toBytes({ type: "replies", items: items.map(({ id, ok }, index) => [id, ok, bodies[index]!.length]) }, bodies);
}

/** Headers must be ASCII. */
function toBytes(header: unknown, bodies: readonly Uint8Array[]): FrameBytes {
  const head = `${JSON.stringify(header)}\n`;
  const bodyBytes = bodies.reduce((sum, { length }) => sum + length, 0);
  const copiesBodies = bodyBytes <= MAX_COPIED_BYTES;
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + head.length + (copiesBodies ? bodyBytes : 0));
  bytes.writeUInt32BE(head.length + bodyBytes, 0);
  let at = PREFIX_BYTES + bytes.write(head, PREFIX_BYTES, "latin1");
  if (!copiesBodies) return [bytes, ...bodies];
  for (const body of bodies) {
    bytes.set(body, at);
    at += body.length;
  }
  return [bytes];
}

const tracebackFrameSchema = z.object({ line: z.int(), column: z.int(), functionName: z.string().nullable(), sourceLine: z.string() });
type TracebackFrame = z.infer<typeof tracebackFrameSchema>;

const endSchema = z.discriminatedUnion("status", [
  z.object({ status: z.literal("value") }),
  z.object({ status: z.literal("limit"), limit: z.enum(["memoryBytes", "resultBytes", "totalMs"]), seen: z.int().optional() }),
  z.object({
    status: z.literal("syntax"),
    unsupported: z.boolean(),
    message: z.string(),
    line: z.int().optional(),
    column: z.int().optional(),
  }),
  z.object({
    status: z.literal("exception"),
    exception: z.string(),
    frames: z.array(tracebackFrameSchema).max(1_000),
    omittedFrames: z.int().default(0),
  }),
]);

const factsSchema = z.object({
  /** Ids of calls. */
  unawaited: z.array(z.int()).max(1_000).default([]),
  warnings: z.array(z.string().max(1_000)).max(1_000).default([]),
});

export interface ScriptDone extends z.infer<typeof factsSchema> {
  readonly end: EngineEnd;
}

/** Parses a `done` frame; null if it is invalid. */
export function readDone({ header, body }: Extract<ChildFrame, { type: "done" }>, limits: ExecuteLimits): ScriptDone | null {
  const end = endSchema.safeParse(header);
  const facts = factsSchema.safeParse(header);
  return end.success && facts.success ? { end: toEngineEnd(end.data, body, limits), ...facts.data } : null;
}

function toEngineEnd(done: z.infer<typeof endSchema>, body: string, limits: ExecuteLimits): EngineEnd {
  switch (done.status) {
    case "value":
      return { kind: "value", json: body };
    case "limit":
      return { kind: "limit", limit: done.limit, allowed: limits[done.limit], ...(done.seen === undefined ? {} : { seen: done.seen }) };
    case "syntax":
      return { kind: "syntax", unsupported: done.unsupported, message: done.message, ...toScriptPlace(done) };
    case "exception": {
      const frames = done.frames.filter(({ line }) => line > preludeLines);
      const last = frames.at(-1);
      if (last === undefined) return { kind: "exception", type: done.exception, message: body };
      const traceback = toTraceback(frames, done.omittedFrames, body === "" ? done.exception : `${done.exception}: ${body}`);
      return { kind: "exception", type: done.exception, message: body, ...toScriptPlace(last), sourceLine: last.sourceLine, traceback };
    }
  }
}

function toTraceback(frames: readonly TracebackFrame[], omitted: number, lastLine: string): string {
  const lines = frames.flatMap(({ line, functionName, sourceLine }, index) => [
    ...(omitted > 0 && index === 20 ? [`  [${omitted} more]`] : []),
    `  line ${line - preludeLines}, in ${functionName ?? "<module>"}`,
    ...(sourceLine === "" ? [] : [`    ${sourceLine.trim()}`]),
  ]);
  return ["Traceback (most recent call last):", ...lines, lastLine].join("\n");
}

/** Line and column in the script, without the lines of the prelude. */
function toScriptPlace({ line = 0, column }: { line?: number | undefined; column?: number | undefined }): {
  line?: number;
  column?: number;
} {
  if (line <= preludeLines) return {};
  return { line: line - preludeLines, ...(column === undefined ? {} : { column }) };
}
