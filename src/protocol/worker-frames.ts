import { z } from "zod";
import { ellipsize } from "../text/clip-text.ts";

/** The frames that a sandbox may send. Any other frame ends the lease. Unknown keys are dropped. */

const cell = z.int().nonnegative();
const text = z.string().max(256 * 1024);
const scratchChanged = z.array(z.string().max(4096)).max(500).optional();

/** The exception of the user code, as the worker reports it. */
const cellErrorSchema = z.object({
  type: text.transform((name) => ellipsize(name, 500)),
  message: text,
  line: z.int().positive().optional(),
  column: z.int().positive().optional(),
  traceback: text.optional(),
  limit: z.object({ name: z.string().max(100), allowed: z.number(), seen: z.number() }).optional(),
});

const output = z.object({
  type: z.literal("output"),
  cell,
  stream: z.enum(["stdout", "stderr"]),
  /** On the last frame of a truncated stream: the bytes that are missing before this body. */
  omittedBytes: z.int().nonnegative().optional(),
});

const artifact = z.object({
  type: z.literal("artifact"),
  cell,
  kind: z.enum(["image", "chart"]),
  alt: z.string().optional(),
  title: z.string().nullish(),
});

/**
 * A part of a content that is larger than a frame, or an image. It belongs to the next frame that can have such a content, whose body is the last part.
 * `image`: the PNG of an artifact. `data`: the data behind an image, or a chart's spec and rows. `result`: of a cell or script. `params`: of a call.
 */
const chunk = z.object({ type: z.literal("chunk"), of: z.enum(["image", "data", "result"]) });
const scriptChunk = z.object({ type: z.literal("chunk"), of: z.enum(["params", "result"]) });

const done = z.object({
  type: z.literal("done"),
  cell,
  status: z.enum(["ok", "python_error", "memory_error", "output_limit", "contract_violation"]),
  error: cellErrorSchema.optional(),
  /** Read with `readDiagnostics`. */
  diagnostics: z.record(z.string(), z.unknown()).default({}),
  leftBehind: z.object({ threads: z.int().nonnegative(), processes: z.int().nonnegative() }).optional(),
  scratchChanged,
});

/** The process of the cell ended without a `done` frame. */
const ended = z.object({
  type: z.literal("ended"),
  cell,
  exitCode: z.int().optional(),
  signal: z.int().positive().max(64).optional(),
  scratchChanged,
});

/** The worker cannot continue; the sandbox ends. */
const lost = z.object({ type: z.literal("lost"), detail: z.string().max(2000) });

/** Frames while a cell runs. */
export const runningFrame = z.discriminatedUnion("type", [output, chunk, artifact, done, ended, lost]);

/** A script calls a tool. The body has the parameters as JSON. */
const call = z.object({ type: z.literal("call"), id: z.int().nonnegative(), name: z.string().max(1000) });

const scriptDone = z.object({
  type: z.literal("done"),
  cell,
  status: z.enum(["ok", "python_error", "syntax_error", "memory_error", "output_limit"]),
  error: cellErrorSchema.optional(),
  /** Ids of calls that were not awaited. */
  unawaited: z.array(z.int().nonnegative()).max(1_000),
  warnings: z.array(z.string().max(500)).max(20).optional(),
});

/** Frames while a script runs. */
export const scriptFrame = z.discriminatedUnion("type", [output, scriptChunk, call, scriptDone, ended, lost]);

/** The reply to an `input` frame. */
export const inputOkFrame = z.object({ type: z.literal("input-ok"), alias: z.string() });

/** The reply to an `undo` frame. `ok`: whether the worker still had the state before the last cell. */
export const undoneFrame = z.object({ type: z.literal("undone"), ok: z.boolean() });

export type CellError = z.infer<typeof cellErrorSchema>;
export type ContentKind = z.infer<typeof chunk | typeof scriptChunk>["of"];
export type ArtifactFrame = z.infer<typeof artifact>;
export type DoneFrame = z.infer<typeof done>;
export type EndedFrame = z.infer<typeof ended>;
export type RunningFrame = z.infer<typeof runningFrame>;
export type ScriptFrame = z.infer<typeof scriptFrame>;
