import { z } from "zod";
import { artifactSchema } from "./artifact.ts";
import { artifactReferenceSchema, toArtifactReference } from "./artifact-reference.ts";

/** Why a turn ended. Only `complete_answer` means that the model finished on its own. `bounded_step_budget`: steps, tokens or cost are spent. */
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

/** Codes of the error table. */
const modelFailureCodes = [
  "MODEL_ACCESS_DENIED",
  "MODEL_NOT_FOUND",
  "MODEL_RATE_LIMITED",
  "MODEL_UNAVAILABLE",
  "MODEL_REQUEST_REFUSED",
  "MODEL_REPLY_INVALID",
  "MODEL_REPLY_INCOMPLETE",
  "MODEL_FAILED",
] as const;

const count = z.int().nonnegative();
const milliseconds = z.number().nonnegative();

/** Something that was asked for and not delivered. `detail` is a sentence, which also appears in the answer. */
export const gapSchema = z.strictObject({
  code: z.string().min(1),
  severity: z.enum(["info", "minor", "major"]),
  detail: z.string().min(1),
});

const confidence = z.strictObject({ level: z.enum(["high", "medium", "low"]), reason: z.string().min(1) });

/** Calls of the model and of its scripts, without `final_response`. Attempts are all requested calls; refused and aborted ones count as failures. */
const grounding = z.strictObject({
  toolCallAttemptCount: count,
  toolCallSuccessCount: count,
  toolCallFailureCount: count,
  failures: z.array(z.strictObject({ tool: z.string(), reason: z.string() })),
});

const dataset = z.strictObject({
  datasetId: z.string().min(1),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: count,
  publicDataUrl: z.string(),
});

const usage = z.strictObject({ steps: count, inputTokens: count, outputTokens: count, wallMs: milliseconds, sandboxMs: milliseconds });

const traceCall = z.strictObject({
  tool: z.string(),
  /** The tool whose script requested the call: the nearest call before it without `within`. */
  within: z.string().optional(),
  intent: z.string().optional(),
  alias: z.string().optional(),
  durationMs: milliseconds,
  status: z.enum(["ok", "error", "refused", "aborted"]),
  /** Content hashes of the artifacts it published. */
  artifacts: z.array(z.string()),
});

const traceStep = z.strictObject({ step: z.int().positive(), calls: z.array(traceCall) });

/** Why the model could not answer: the first sentence says what happened and why, the second one what to do. */
const modelFailure = z.strictObject({ code: z.enum(modelFailureCodes), message: z.string().min(1), hint: z.string().min(1) });

/** What `runTurn` returns. */
export const turnResultSchema = z.strictObject({
  schemaVersion: z.literal(1),
  turnId: z.string().min(1),
  conversationId: z.string().min(1),
  answer: z.string(),
  artifacts: z.array(artifactSchema),
  gaps: z.array(gapSchema),
  /** `error`: with `model_error`, why the model failed. */
  outcome: z.strictObject({ stopReason: z.enum(stopReasons), error: modelFailure.optional() }),
  /** The model that answered; not in results of earlier versions. */
  model: z.string().min(1).optional(),
  confidence,
  grounding,
  /** Null when it could not be stored; then there is a gap. */
  dataset: dataset.nullable(),
  usage,
  trace: z.array(traceStep),
});

/** The result as events, HTTP answers and the history hold it: with references instead of artifacts. */
export const recordedResultSchema = turnResultSchema.extend({ artifacts: z.array(artifactReferenceSchema) });

export function toRecordedResult(result: TurnResult): RecordedResult {
  return { ...result, artifacts: result.artifacts.map(toArtifactReference) };
}

export type ModelFailure = z.infer<typeof modelFailure>;
export type StopReason = (typeof stopReasons)[number];
export type Gap = z.infer<typeof gapSchema>;
export type Confidence = z.infer<typeof confidence>;
export type Grounding = z.infer<typeof grounding>;
export type DatasetReference = z.infer<typeof dataset>;
export type TurnUsage = z.infer<typeof usage>;
export type TraceCall = z.infer<typeof traceCall>;
export type TraceStep = z.infer<typeof traceStep>;
export type TurnResult = z.infer<typeof turnResultSchema>;
export type RecordedResult = z.infer<typeof recordedResultSchema>;
