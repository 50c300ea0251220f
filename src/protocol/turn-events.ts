import { z } from "zod";
import { artifactReferenceSchema } from "./artifact-reference.ts";
import { turnPlanSchema } from "./turn-plan.ts";
import { recordedResultSchema } from "./turn-result.ts";

const optionalText = z.string().optional();
const count = z.int().nonnegative();
const step = z.int().positive();

const toolStart = z.strictObject({
  type: z.literal("tool-start"),
  step,
  callId: z.string(),
  tool: z.string(),
  /** Only for backend tools. */
  server: optionalText,
  intent: optionalText,
  /** The `execute` call whose script requested this call. */
  within: optionalText,
  /** For backend tools, `execute` and the search tools; omitted when too long. */
  arguments: z.unknown().optional(),
  /** Their size as JSON, when they are omitted. */
  argumentsOmittedBytes: count.optional(),
});

/** A cell with a valid call contract is about to run. Has the complete call, with edits applied. */
const cellStart = z.strictObject({
  type: z.literal("cell-start"),
  callId: z.string(),
  step,
  tool: z.enum(["code_interpreter", "python_code_edit"]),
  code: z.string(),
  /** Aliases by local name. */
  inputs: z.record(z.string(), z.string()).optional(),
  postProcessingContract: z.strictObject({
    operation: z.string(),
    reason: z.string(),
    inputAliases: z.array(z.string()),
    expectedArtifacts: z.array(z.enum(["image", "chart"])),
  }),
});

/** A call that may change something waits for approval. The wait counts towards the time limit of the turn. */
const approvalRequest = z.strictObject({
  type: z.literal("approval-request"),
  approvalId: z.string(),
  /** The model's call; for a script's call, the call of `execute`. */
  callId: z.string(),
  tool: z.string(),
  server: z.string(),
  arguments: z.record(z.string(), z.unknown()),
});

const approvalEnd = z.strictObject({
  type: z.literal("approval-end"),
  approvalId: z.string(),
  callId: z.string(),
  /** `abandoned`: the turn or the script ended before the answer. */
  answer: z.enum(["approved", "refused", "abandoned"]),
});

const toolEnd = z.strictObject({
  type: z.literal("tool-end"),
  step,
  callId: z.string(),
  tool: z.string(),
  server: optionalText,
  status: z.enum(["ok", "error", "refused", "aborted"]),
  durationMs: z.number().nonnegative(),
  alias: optionalText,
  rows: count.optional(),
  bytes: count.optional(),
  /** Why the call failed or was refused. */
  reason: optionalText,
  within: optionalText,
});

/**
 * The events of a turn, in order. The first is always `turn-start` and the last `turn-end`. The texts of all `answer-delta` events form the answer; they
 * are checked before they are emitted, so no text is ever retracted.
 */
export const turnEventSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("turn-start"), turnId: z.string(), conversationId: z.string(), question: z.string() }),
  z.strictObject({ type: z.literal("plan"), plan: turnPlanSchema, steps: step }),
  z.strictObject({ type: z.literal("step-start"), step, of: step, forced: optionalText }),
  toolStart,
  cellStart,
  z.strictObject({
    type: z.literal("tool-progress"),
    callId: z.string(),
    tool: z.string(),
    progress: z.number(),
    total: z.number().optional(),
    message: optionalText,
  }),
  approvalRequest,
  approvalEnd,
  toolEnd,
  z.strictObject({ type: z.literal("cell-output"), callId: z.string(), stream: z.enum(["stdout", "stderr"]), text: z.string() }),
  /** `replaces`: content hashes of artifacts that a cell edit made obsolete. */
  z.strictObject({ type: z.literal("artifact"), artifact: artifactReferenceSchema, replaces: z.array(z.string()) }),
  z.strictObject({ type: z.literal("answer-delta"), text: z.string() }),
  z.strictObject({ type: z.literal("turn-end"), result: recordedResultSchema }),
]);

export type TurnEvent = z.infer<typeof turnEventSchema>;
export type TurnEventType = TurnEvent["type"];
export type ToolStartEvent = z.infer<typeof toolStart>;
export type CellStartEvent = z.infer<typeof cellStart>;
export type ApprovalRequestEvent = z.infer<typeof approvalRequest>;
export type ApprovalEndEvent = z.infer<typeof approvalEnd>;
export type ToolEndEvent = z.infer<typeof toolEnd>;
