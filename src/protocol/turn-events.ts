import { z } from "zod";
import { artifactSchema } from "./artifact.ts";
import { turnPlanSchema } from "./turn-plan.ts";
import { turnResultSchema } from "./turn-result.ts";

const optionalText = z.string().optional();
const count = z.int().nonnegative();
const step = z.int().positive();

const toolStart = z.strictObject({
  type: z.literal("tool-start"),
  step,
  callId: z.string(),
  tool: z.string(),
  /** Of a backend tool. */
  server: optionalText,
  intent: optionalText,
  /** The call of `execute` whose script made this one. */
  within: optionalText,
  /** Of a backend tool, of `execute` and of what finds tools; left out when they are long. */
  arguments: z.unknown().optional(),
  /** How long they are, as JSON. */
  argumentsOmittedBytes: count.optional(),
});

/** A cell whose contract holds is about to run: the whole call, with its edits made. */
const cellStart = z.strictObject({
  type: z.literal("cell-start"),
  callId: z.string(),
  step,
  tool: z.enum(["code_interpreter", "python_code_edit"]),
  code: z.string(),
  /** Local name to alias. */
  inputs: z.record(z.string(), z.string()).optional(),
  postProcessingContract: z.strictObject({
    operation: z.string(),
    reason: z.string(),
    inputAliases: z.array(z.string()),
    expectedArtifacts: z.array(z.enum(["image", "chart"])),
  }),
});

/** A call that may change something waits for a person. It is answered by whoever runs the turn, within the turn's time. */
const approvalRequest = z.strictObject({
  type: z.literal("approval-request"),
  approvalId: z.string(),
  /** The model's call; of `execute`, when a script made it. */
  callId: z.string(),
  tool: z.string(),
  server: z.string(),
  arguments: z.record(z.string(), z.unknown()),
});

const approvalEnd = z.strictObject({
  type: z.literal("approval-end"),
  approvalId: z.string(),
  callId: z.string(),
  /** `abandoned`: the turn, or the script, was over before somebody answered. */
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
  /** Why it failed. */
  reason: optionalText,
  within: optionalText,
});

/**
 * What happens while a turn runs, in the order in which it happens. `turn-start` is the first and `turn-end` the last, always. The texts of all
 * `answer-delta` joined are the answer; they are checked before they are sent, so nothing of them is ever taken back.
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
  /** `replaces`: content hashes of artifacts that an edited cell gave before, and that do not count any more. */
  z.strictObject({ type: z.literal("artifact"), artifact: artifactSchema, replaces: z.array(z.string()) }),
  z.strictObject({ type: z.literal("answer-delta"), text: z.string() }),
  z.strictObject({ type: z.literal("turn-end"), result: turnResultSchema }),
]);

export type TurnEvent = z.infer<typeof turnEventSchema>;
export type TurnEventType = TurnEvent["type"];
export type ToolStartEvent = z.infer<typeof toolStart>;
export type CellStartEvent = z.infer<typeof cellStart>;
export type ApprovalRequestEvent = z.infer<typeof approvalRequest>;
export type ApprovalEndEvent = z.infer<typeof approvalEnd>;
export type ToolEndEvent = z.infer<typeof toolEnd>;
