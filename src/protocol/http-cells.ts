import { z } from "zod";
import { artifactSchema, type ArtifactEnvelope } from "./artifact.ts";
import { httpIdSchema, httpTimeSchema } from "./http-error.ts";

/** Body of `POST /api/cells`: one cell of an ended turn, run again with other code. */
export interface CellRunCreation {
  turnId: string;
  /** Counted from 1, as in the turn's `cells`. */
  cell: number;
  code: string;
}

export const cellRunCreationSchema: z.ZodType<CellRunCreation> = z.strictObject({
  turnId: httpIdSchema,
  cell: z.int().positive(),
  code: z.string().min(1).max(200_000),
});

/** What a run of a cell by hand gave. What the turn itself gave stays as it was. */
export interface CellRun {
  runId: string;
  turnId: string;
  cell: number;
  code: string;
  at: string;
  /** As of any cell: `ok`, `python_error`, `timeout`, … */
  status: string;
  error: { type: string; message: string; line?: number | undefined; traceback?: string | undefined } | null;
  stdout: string;
  stderr: string;
  resultAlias: string | null;
  /** The result as JSON text, as far as it fits; null when there is none. */
  resultPreview: string | null;
  /** The preview is not the whole; the alias has it. */
  isResultCut: boolean;
  artifacts: ArtifactEnvelope[];
  diagnostics: Record<string, unknown>;
  timing: { queueMs: number; startMs: number; runMs: number; totalMs: number };
  previous: { code: string; resultAlias: string | null; artifacts: string[] };
}

/** A cell of a turn, as the model had it run, with what was run of it by hand since. */
export interface CellDocument {
  cell: number;
  callId: string;
  step: number;
  tool: string;
  code: string;
  inputAliases: string[];
  expectedArtifacts: string[];
  reason: string;
  status: "running" | "ok" | "error" | "refused" | "aborted";
  resultAlias: string | null;
  /** Content hashes. */
  artifacts: string[];
  runs: CellRun[];
}

export const cellRunSchema: z.ZodType<CellRun> = z.strictObject({
  runId: z.string(),
  turnId: httpIdSchema,
  cell: z.int().positive(),
  code: z.string(),
  at: httpTimeSchema,
  status: z.string(),
  error: z.strictObject({ type: z.string(), message: z.string(), line: z.int().optional(), traceback: z.string().optional() }).nullable(),
  stdout: z.string(),
  stderr: z.string(),
  resultAlias: z.string().nullable(),
  resultPreview: z.string().nullable(),
  isResultCut: z.boolean(),
  artifacts: z.array(artifactSchema),
  diagnostics: z.record(z.string(), z.unknown()),
  timing: z.strictObject({ queueMs: z.number(), startMs: z.number(), runMs: z.number(), totalMs: z.number() }),
  previous: z.strictObject({ code: z.string(), resultAlias: z.string().nullable(), artifacts: z.array(z.string()) }),
});

export const cellRecordSchema: z.ZodType<CellDocument> = z.strictObject({
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
  artifacts: z.array(z.string()),
  runs: z.array(cellRunSchema),
});
