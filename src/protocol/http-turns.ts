import { z } from "zod";
import { cellRecordSchema, type CellDocument } from "./http-cells.ts";
import { httpIdSchema, httpTimeSchema } from "./http-error.ts";
import { stopReasons, turnResultSchema, type StopReason, type TurnResult } from "./turn-result.ts";

export const maxQuestionCharacters = 20_000;

/** Body of `POST /api/turns`. */
export interface TurnCreation {
  question: string;
  /** A new conversation unless told. */
  conversationId?: string | undefined;
  /** Answer when the turn has ended, not when it has begun. A caller who goes away meanwhile ends it. */
  wait?: boolean | undefined;
}

export const turnCreationSchema: z.ZodType<TurnCreation> = z.strictObject({
  question: z.string().trim().min(1).max(maxQuestionCharacters),
  conversationId: httpIdSchema.optional(),
  wait: z.boolean().optional(),
});

export const turnStatuses = ["running", "ended"] as const;
export type TurnStatus = (typeof turnStatuses)[number];

export interface TurnSummary {
  turnId: string;
  conversationId: string;
  question: string;
  status: TurnStatus;
  createdAt: string;
  endedAt: string | null;
  stopReason: StopReason | null;
  /** The turn that was asked instead of this one. */
  supersededBy: string | null;
}

export interface PendingApproval {
  approvalId: string;
  callId: string;
  tool: string;
  server: string;
  arguments: Record<string, unknown>;
}

export interface TurnDocument extends TurnSummary {
  schemaVersion: 1;
  /** Null while it runs. */
  result: TurnResult | null;
  pendingApprovals: PendingApproval[];
  /** Of the last event so far; 0 before the first. */
  lastEventId: number;
  cells: CellDocument[];
}

const summaryFields = {
  turnId: httpIdSchema,
  conversationId: httpIdSchema,
  question: z.string(),
  status: z.enum(turnStatuses),
  createdAt: httpTimeSchema,
  endedAt: httpTimeSchema.nullable(),
  stopReason: z.enum(stopReasons).nullable(),
  supersededBy: z.string().nullable(),
};

export const turnListSchema: z.ZodType<{ turns: TurnSummary[]; next: string | null }> = z.strictObject({
  turns: z.array(z.strictObject(summaryFields)),
  next: z.string().nullable(),
});

export const pendingApprovalSchema: z.ZodType<PendingApproval> = z.strictObject({
  approvalId: z.string(),
  callId: z.string(),
  tool: z.string(),
  server: z.string(),
  arguments: z.record(z.string(), z.unknown()),
});

export const turnDocumentSchema: z.ZodType<TurnDocument> = z.strictObject({
  schemaVersion: z.literal(1),
  ...summaryFields,
  result: turnResultSchema.nullable(),
  pendingApprovals: z.array(pendingApprovalSchema),
  lastEventId: z.int().nonnegative(),
  cells: z.array(cellRecordSchema),
});

export const turnStopSchema: z.ZodType<{ turnId: string; status: TurnStatus }> = z.strictObject({
  turnId: httpIdSchema,
  status: z.enum(turnStatuses),
});

/** Body of `POST /api/turns/:id/approvals/:approvalId`. */
export const approvalAnswerSchema: z.ZodType<{ approved: boolean }> = z.strictObject({ approved: z.boolean() });

export const approvalTakenSchema: z.ZodType<{ approvalId: string; answer: "approved" | "refused" }> = z.strictObject({
  approvalId: z.string(),
  answer: z.enum(["approved", "refused"]),
});
