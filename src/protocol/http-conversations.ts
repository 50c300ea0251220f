import { z } from "zod";
import { chatMetadataSchema, type ChatMetadata } from "./http-chat.ts";
import { httpIdSchema, httpTimeSchema } from "./http-error.ts";
import { aliasSchema, type Alias } from "./http-tables.ts";

export interface ConversationSummary {
  id: string;
  title: string;
  createdAt: string;
  updatedAt: string;
  turns: number;
  runningTurnId: string | null;
  /** Where a search found something. */
  snippet?: string | undefined;
}

export interface ConversationList {
  conversations: ConversationSummary[];
  /** `before` of the next page; null when this is the last. */
  next: string | null;
}

/** A message as the AI SDK's `useChat` keeps it. Data parts are of http-chat.ts. */
export interface ConversationMessage {
  /** `<turnId>.user`, or `<turnId>`. */
  id: string;
  role: "user" | "assistant";
  metadata?: ChatMetadata | undefined;
  parts: Record<string, unknown>[];
}

export interface ConversationDocument {
  id: string;
  title: string;
  createdAt: string;
  updatedAt: string;
  runningTurnId: string | null;
  messages: ConversationMessage[];
  aliases: Alias[];
}

const fields = {
  id: httpIdSchema,
  title: z.string(),
  createdAt: httpTimeSchema,
  updatedAt: httpTimeSchema,
  runningTurnId: z.string().nullable(),
};

const summary: z.ZodType<ConversationSummary> = z.strictObject({
  ...fields,
  turns: z.int().nonnegative(),
  snippet: z.string().optional(),
});

export const conversationListSchema: z.ZodType<ConversationList> = z.strictObject({
  conversations: z.array(summary),
  next: z.string().nullable(),
});

export const conversationSchema: z.ZodType<ConversationDocument> = z.strictObject({
  ...fields,
  messages: z.array(
    z.strictObject({
      id: z.string(),
      role: z.enum(["user", "assistant"]),
      metadata: chatMetadataSchema.optional(),
      parts: z.array(z.looseObject({ type: z.string() })),
    }),
  ),
  aliases: z.array(aliasSchema),
});

/** Body of `PATCH /api/conversations/:id`. */
export const conversationChangeSchema: z.ZodType<{ title: string }> = z.strictObject({ title: z.string().trim().min(1).max(200) });
