import { z } from "zod";
import { artifactSchema, type ArtifactEnvelope } from "./artifact.ts";

/** What ended a turn. Only `complete_answer` means that the model said it was done. */
export const stopReasons = [
  "complete_answer",
  "bounded_step_budget",
  "bounded_time",
  "bounded_repeat_guardrail",
  "bounded_empty_result",
  "bounded_upstream_failure",
  "capability_miss",
  "model_error",
  "aborted",
] as const;
export type StopReason = (typeof stopReasons)[number];

/** Something that was asked for and not delivered. `detail` is a sentence that stands in the answer. */
export interface Gap {
  code: string;
  severity: "info" | "minor" | "major";
  detail: string;
}

export interface Confidence {
  level: "high" | "medium" | "low";
  reason: string;
}

/** Calls of the model and of its scripts, `final_response` left out. */
export interface Grounding {
  toolCallAttemptCount: number;
  toolCallSuccessCount: number;
  toolCallFailureCount: number;
  failures: { tool: string; reason: string }[];
}

export interface DatasetReference {
  datasetId: string;
  hash: string;
  bytes: number;
  publicDataUrl: string;
}

export interface TurnUsage {
  steps: number;
  inputTokens: number;
  outputTokens: number;
  wallMs: number;
  sandboxMs: number;
}

export interface TraceCall {
  tool: string;
  /** The tool whose script made the call: that of the nearest one before it without `within`. */
  within?: string | undefined;
  intent?: string | undefined;
  alias?: string | undefined;
  durationMs: number;
  status: "ok" | "error" | "refused" | "aborted";
  /** Content hashes of what it published. */
  artifacts: string[];
}

export interface TraceStep {
  step: number;
  calls: TraceCall[];
}

export interface TurnResult {
  schemaVersion: 1;
  turnId: string;
  conversationId: string;
  answer: string;
  artifacts: ArtifactEnvelope[];
  gaps: Gap[];
  outcome: { stopReason: StopReason };
  confidence: Confidence;
  grounding: Grounding;
  /** Null when it could not be kept, which is a gap. */
  dataset: DatasetReference | null;
  usage: TurnUsage;
  trace: TraceStep[];
}

const count = z.int().nonnegative();
const milliseconds = z.number().nonnegative();

export const gapSchema: z.ZodType<Gap> = z.strictObject({
  code: z.string().min(1),
  severity: z.enum(["info", "minor", "major"]),
  detail: z.string().min(1),
});

export const turnResultSchema: z.ZodType<TurnResult> = z.strictObject({
  schemaVersion: z.literal(1),
  turnId: z.string().min(1),
  conversationId: z.string().min(1),
  answer: z.string(),
  artifacts: z.array(artifactSchema),
  gaps: z.array(gapSchema),
  outcome: z.strictObject({ stopReason: z.enum(stopReasons) }),
  confidence: z.strictObject({ level: z.enum(["high", "medium", "low"]), reason: z.string().min(1) }),
  grounding: z.strictObject({
    toolCallAttemptCount: count,
    toolCallSuccessCount: count,
    toolCallFailureCount: count,
    failures: z.array(z.strictObject({ tool: z.string(), reason: z.string() })),
  }),
  dataset: z
    .strictObject({ datasetId: z.string().min(1), hash: z.string().regex(/^[0-9a-f]{64}$/), bytes: count, publicDataUrl: z.string() })
    .nullable(),
  usage: z.strictObject({ steps: count, inputTokens: count, outputTokens: count, wallMs: milliseconds, sandboxMs: milliseconds }),
  trace: z.array(
    z.strictObject({
      step: z.int().positive(),
      calls: z.array(
        z.strictObject({
          tool: z.string(),
          within: z.string().optional(),
          intent: z.string().optional(),
          alias: z.string().optional(),
          durationMs: milliseconds,
          status: z.enum(["ok", "error", "refused", "aborted"]),
          artifacts: z.array(z.string()),
        }),
      ),
    }),
  ),
});
