import { z } from "zod";
import type { CellError } from "../../protocol/outcome.ts";
import { cellErrorSchema } from "../../protocol/worker-frames.ts";

/** What a sandbox may send while it runs a script. Everything else ends it; extra keys are dropped. */
export type ScriptFrame =
  | { type: "output"; cell: number; stream: "stdout" | "stderr"; omittedBytes?: number | undefined }
  /** The body is the params as JSON. */
  | { type: "call"; id: number; name: string }
  /** The body is the result as JSON. */
  | {
      type: "done";
      cell: number;
      status: "ok" | "python_error" | "syntax_error" | "memory_error" | "output_limit";
      error?: CellError | undefined;
      /** Numbers of calls. */
      unawaited: number[];
      warnings?: string[] | undefined;
    }
  | { type: "ended"; cell: number; exitCode?: number | undefined; signal?: number | undefined }
  | { type: "lost"; detail: string };

/** A sandbox runs one script, so this is always its number. */
export const scriptNumber = 1;

const cell = z.literal(scriptNumber);

export const scriptFrame: z.ZodType<ScriptFrame> = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("output"),
    cell,
    stream: z.enum(["stdout", "stderr"]),
    omittedBytes: z.int().nonnegative().optional(),
  }),
  z.object({ type: z.literal("call"), id: z.int().nonnegative(), name: z.string().max(1000) }),
  z.object({
    type: z.literal("done"),
    cell,
    status: z.enum(["ok", "python_error", "syntax_error", "memory_error", "output_limit"]),
    error: cellErrorSchema.optional(),
    unawaited: z.array(z.int().nonnegative()).max(1_000),
    warnings: z.array(z.string().max(500)).max(20).optional(),
  }),
  z.object({ type: z.literal("ended"), cell, exitCode: z.int().optional(), signal: z.int().positive().max(64).optional() }),
  z.object({ type: z.literal("lost"), detail: z.string().max(2000) }),
]);
