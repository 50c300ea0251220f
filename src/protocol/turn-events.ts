import { z } from "zod";
import { artifactSchema, type ArtifactEnvelope } from "./artifact.ts";
import { turnPlanSchema, type TurnPlan } from "./turn-plan.ts";
import { turnResultSchema, type TraceCall, type TurnResult } from "./turn-result.ts";

/**
 * What happens while a turn runs, in the order in which it happens. `turn-start` is the first and `turn-end` the last, always. The texts of all
 * `answer-delta` joined are the answer; they are checked before they are sent, so nothing of them is ever taken back.
 */
export type TurnEvent =
  | { type: "turn-start"; turnId: string; conversationId: string; question: string }
  | { type: "plan"; plan: TurnPlan; steps: number }
  | { type: "step-start"; step: number; of: number; forced?: string | undefined }
  | ToolStartEvent
  | {
      type: "tool-progress";
      callId: string;
      tool: string;
      progress: number;
      total?: number | undefined;
      message?: string | undefined;
    }
  /** A call that may change something waits for a person. It is answered by whoever runs the turn, within the turn's time. */
  | ApprovalRequestEvent
  | ApprovalEndEvent
  | CellStartEvent
  | ToolEndEvent
  | { type: "cell-output"; callId: string; stream: "stdout" | "stderr"; text: string }
  /** `replaces`: content hashes of artifacts that an edited cell gave before, and that do not count any more. */
  | { type: "artifact"; artifact: ArtifactEnvelope; replaces: string[] }
  | { type: "answer-delta"; text: string }
  | { type: "turn-end"; result: TurnResult };

export interface ToolStartEvent {
  type: "tool-start";
  step: number;
  callId: string;
  tool: string;
  /** Of a backend tool. */
  server?: string | undefined;
  intent?: string | undefined;
  /** The call of `execute` whose script made this one. */
  within?: string | undefined;
  /** Of a backend tool, of `execute` and of what finds tools; left out when they are long. */
  arguments?: unknown;
  /** How long they are, as JSON. */
  argumentsOmittedBytes?: number | undefined;
}

/** A cell whose contract holds is about to run: the whole call, with its edits made. */
export interface CellStartEvent {
  type: "cell-start";
  callId: string;
  step: number;
  tool: "code_interpreter" | "python_code_edit";
  code: string;
  /** Local name to alias. */
  inputs?: Record<string, string> | undefined;
  postProcessingContract: { operation: string; reason: string; inputAliases: string[]; expectedArtifacts: ("image" | "chart")[] };
}

export interface ApprovalRequestEvent {
  type: "approval-request";
  approvalId: string;
  /** The model's call; of `execute`, when a script made it. */
  callId: string;
  tool: string;
  server: string;
  arguments: Record<string, unknown>;
}

export interface ApprovalEndEvent {
  type: "approval-end";
  approvalId: string;
  callId: string;
  /** `abandoned`: the turn, or the script, was over before somebody answered. */
  answer: "approved" | "refused" | "abandoned";
}

export interface ToolEndEvent {
  type: "tool-end";
  step: number;
  callId: string;
  tool: string;
  server?: string | undefined;
  status: TraceCall["status"];
  durationMs: number;
  alias?: string | undefined;
  rows?: number | undefined;
  bytes?: number | undefined;
  /** Why it failed. */
  reason?: string | undefined;
  within?: string | undefined;
}

export type TurnEventType = TurnEvent["type"];

const optionalText = z.string().optional();
const step = z.int().positive();
const statuses = z.enum(["ok", "error", "refused", "aborted"]);

export const turnEventSchema: z.ZodType<TurnEvent> = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("turn-start"), turnId: z.string(), conversationId: z.string(), question: z.string() }),
  z.strictObject({ type: z.literal("plan"), plan: turnPlanSchema, steps: step }),
  z.strictObject({ type: z.literal("step-start"), step, of: step, forced: optionalText }),
  z.strictObject({
    type: z.literal("tool-start"),
    step,
    callId: z.string(),
    tool: z.string(),
    server: optionalText,
    intent: optionalText,
    within: optionalText,
    arguments: z.unknown().optional(),
    argumentsOmittedBytes: z.int().nonnegative().optional(),
  }),
  z.strictObject({
    type: z.literal("cell-start"),
    callId: z.string(),
    step,
    tool: z.enum(["code_interpreter", "python_code_edit"]),
    code: z.string(),
    inputs: z.record(z.string(), z.string()).optional(),
    postProcessingContract: z.strictObject({
      operation: z.string(),
      reason: z.string(),
      inputAliases: z.array(z.string()),
      expectedArtifacts: z.array(z.enum(["image", "chart"])),
    }),
  }),
  z.strictObject({
    type: z.literal("tool-progress"),
    callId: z.string(),
    tool: z.string(),
    progress: z.number(),
    total: z.number().optional(),
    message: optionalText,
  }),
  z.strictObject({
    type: z.literal("approval-request"),
    approvalId: z.string(),
    callId: z.string(),
    tool: z.string(),
    server: z.string(),
    arguments: z.record(z.string(), z.unknown()),
  }),
  z.strictObject({
    type: z.literal("approval-end"),
    approvalId: z.string(),
    callId: z.string(),
    answer: z.enum(["approved", "refused", "abandoned"]),
  }),
  z.strictObject({
    type: z.literal("tool-end"),
    step,
    callId: z.string(),
    tool: z.string(),
    server: optionalText,
    status: statuses,
    durationMs: z.number().nonnegative(),
    alias: optionalText,
    rows: z.int().nonnegative().optional(),
    bytes: z.int().nonnegative().optional(),
    reason: optionalText,
    within: optionalText,
  }),
  z.strictObject({ type: z.literal("cell-output"), callId: z.string(), stream: z.enum(["stdout", "stderr"]), text: z.string() }),
  z.strictObject({ type: z.literal("artifact"), artifact: artifactSchema, replaces: z.array(z.string()) }),
  z.strictObject({ type: z.literal("answer-delta"), text: z.string() }),
  z.strictObject({ type: z.literal("turn-end"), result: turnResultSchema }),
]);
