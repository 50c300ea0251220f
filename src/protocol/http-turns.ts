import { z } from "zod";
import { cellRecordSchema } from "./http-cells.ts";
import { httpIdSchema, httpTimeSchema } from "./http-error.ts";
import { timeZone } from "./setting.ts";
import { recordedResultSchema, stopReasons } from "./turn-result.ts";

export const maxQuestionCharacters = 20_000;

/** Body of `POST /api/turns`. */
export const turnCreationSchema = z.strictObject({
  question: z.string().trim().min(1).max(maxQuestionCharacters),
  /** Default: a new conversation. */
  conversationId: httpIdSchema.optional(),
  /** For the current date that the model reads. Default: the server's. */
  timeZone: timeZone.optional(),
  /** Respond when the turn ends instead of when it starts. Closing the connection aborts the turn. */
  wait: z.boolean().optional(),
});

export const turnStatuses = ["running", "ended"] as const;

const summary = z.strictObject({
  turnId: httpIdSchema,
  conversationId: httpIdSchema,
  question: z.string(),
  status: z.enum(turnStatuses),
  createdAt: httpTimeSchema,
  endedAt: httpTimeSchema.nullable(),
  stopReason: z.enum(stopReasons).nullable(),
  /** The turn that replaced this one. */
  supersededBy: z.string().nullable(),
});

export const turnListSchema = z.strictObject({ turns: z.array(summary), next: z.string().nullable() });

export const pendingApprovalSchema = z.strictObject({
  approvalId: z.string(),
  callId: z.string(),
  tool: z.string(),
  server: z.string(),
  arguments: z.record(z.string(), z.unknown()),
});

export const turnDocumentSchema = z.strictObject({
  schemaVersion: z.literal(1),
  ...summary.shape,
  /** Null while the turn runs. */
  result: recordedResultSchema.nullable(),
  pendingApprovals: z.array(pendingApprovalSchema),
  /** The id of the last event so far; 0 before the first. */
  lastEventId: z.int().nonnegative(),
  cells: z.array(cellRecordSchema),
});

export const turnStopSchema = z.strictObject({ turnId: httpIdSchema, status: z.enum(turnStatuses) });

/** Body of `POST /api/turns/:id/approvals/:approvalId`. */
export const approvalAnswerSchema = z.strictObject({ approved: z.boolean() });

export const approvalTakenSchema = z.strictObject({ approvalId: z.string(), answer: z.enum(["approved", "refused"]) });

export type TurnCreation = z.infer<typeof turnCreationSchema>;
export type TurnStatus = (typeof turnStatuses)[number];
export type TurnSummary = z.infer<typeof summary>;
export type PendingApproval = z.infer<typeof pendingApprovalSchema>;
export type TurnDocument = z.infer<typeof turnDocumentSchema>;
