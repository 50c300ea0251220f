import { z } from "zod";
import type { CellError } from "./outcome.ts";

export interface OutputFrame {
  type: "output";
  cell: number;
  stream: "stdout" | "stderr";
  /** Set on the last frame of a stream that was cut: how much is missing before this body. */
  omittedBytes?: number | undefined;
}

export interface ArtifactFrame {
  type: "artifact";
  cell: number;
  kind: "image" | "chart";
  alt?: string | undefined;
  title?: string | null | undefined;
  /** An image's body is the PNG and then, as JSON, the data behind it; this says where it splits. */
  pngBytes?: number | undefined;
}

export interface DoneFrame {
  type: "done";
  cell: number;
  status: "ok" | "python_error" | "memory_error" | "output_limit" | "contract_violation";
  error?: CellError | undefined;
  diagnostics: Record<string, unknown>;
  leftBehind?: { threads: number; processes: number } | undefined;
  scratchChanged?: string[] | undefined;
}

/** The process that ran the cell ended without an answer. */
export interface EndedFrame {
  type: "ended";
  cell: number;
  exitCode?: number | undefined;
  signal?: number | undefined;
  scratchChanged?: string[] | undefined;
}

/** The worker gives up; the sandbox ends. */
export interface LostFrame {
  type: "lost";
  detail: string;
}

/** Frames that may come while a cell runs. */
export type RunningFrame = OutputFrame | ArtifactFrame | DoneFrame | EndedFrame | LostFrame;

/** What a sandbox may send, frame by frame. Everything else ends the lease. Extra keys are dropped, so nothing unknown travels on. */

const cell = z.int().nonnegative();
const text = z.string().max(256 * 1024);
const scratchChanged = z.array(z.string().max(4096)).max(500).optional();

/** The user's own exception, as a worker tells it. */
export const cellErrorSchema: z.ZodType<CellError> = z.object({
  type: text.transform((name) => (name.length <= 500 ? name : `${name.slice(0, 499)}…`)),
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
  omittedBytes: z.int().nonnegative().optional(),
});

const artifact = z.object({
  type: z.literal("artifact"),
  cell,
  kind: z.enum(["image", "chart"]),
  alt: z.string().optional(),
  title: z.string().nullish(),
  pngBytes: z.int().nonnegative().optional(),
});

const done = z.object({
  type: z.literal("done"),
  cell,
  status: z.enum(["ok", "python_error", "memory_error", "output_limit", "contract_violation"]),
  error: cellErrorSchema.optional(),
  diagnostics: z.record(z.string(), z.unknown()).default({}),
  leftBehind: z.object({ threads: z.int().nonnegative(), processes: z.int().nonnegative() }).optional(),
  scratchChanged,
});

const ended = z.object({
  type: z.literal("ended"),
  cell,
  exitCode: z.int().optional(),
  signal: z.int().positive().max(64).optional(),
  scratchChanged,
});

const lost = z.object({ type: z.literal("lost"), detail: z.string().max(2000) });

export const runningFrame: z.ZodType<RunningFrame> = z.discriminatedUnion("type", [output, artifact, done, ended, lost]);

/** The answer to an `input` frame. */
export const inputOkFrame: z.ZodType<{ type: "input-ok"; alias: string }> = z.object({
  type: z.literal("input-ok"),
  alias: z.string(),
});

/** The answer to an `undo` frame: whether the worker still had the state from before the last cell. */
export const undoneFrame: z.ZodType<{ type: "undone"; ok: boolean }> = z.object({ type: z.literal("undone"), ok: z.boolean() });
