import { z } from "zod";
import { artifactReferenceSchema } from "./artifact-reference.ts";
import { httpIdSchema, httpTimeSchema } from "./http-error.ts";
import { cellTimingSchema } from "./outcome.ts";

/** Body of `POST /api/cells`: runs one cell of an ended turn again with different code. */
export const cellRunCreationSchema = z.strictObject({
  turnId: httpIdSchema,
  /** Counted from 1, as in the turn's `cells`. */
  cell: z.int().positive(),
  code: z.string().min(1).max(200_000),
});

/** The outcome of a cell that a user ran again. The result of the turn does not change. */
export const cellRunSchema = z.strictObject({
  runId: z.string(),
  turnId: httpIdSchema,
  cell: z.int().positive(),
  code: z.string(),
  at: httpTimeSchema,
  /** The status of a cell: `ok`, `python_error`, `timeout`, … */
  status: z.string(),
  error: z.strictObject({ type: z.string(), message: z.string(), line: z.int().optional(), traceback: z.string().optional() }).nullable(),
  stdout: z.string(),
  stderr: z.string(),
  resultAlias: z.string().nullable(),
  /** The beginning of the result as JSON text; null without a result. */
  resultPreview: z.string().nullable(),
  /** Whether the preview is incomplete. The alias has the complete result. */
  isResultCut: z.boolean(),
  artifacts: z.array(artifactReferenceSchema),
  diagnostics: z.record(z.string(), z.unknown()),
  timing: cellTimingSchema,
  previous: z.strictObject({ code: z.string(), resultAlias: z.string().nullable(), artifacts: z.array(z.string()) }),
});

/** A cell of a turn, and the runs that users made of it since. */
export const cellRecordSchema = z.strictObject({
  cell: z.int().positive(),
  callId: z.string(),
  step: z.int().positive(),
  tool: z.string(),
  code: z.string(),
  inputAliases: z.array(z.string()),
  expectedArtifacts: z.array(z.string()),
  reason: z.string(),
  status: z.enum(["running", "ok", "error", "refused", "aborted"]),
  resultAlias: z.string().nullable(),
  /** Content hashes. */
  artifacts: z.array(z.string()),
  runs: z.array(cellRunSchema),
});

export type CellRunCreation = z.infer<typeof cellRunCreationSchema>;
export type CellRun = z.infer<typeof cellRunSchema>;
export type CellDocument = z.infer<typeof cellRecordSchema>;
