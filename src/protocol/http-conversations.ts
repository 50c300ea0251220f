import { z } from "zod";
import { chatMetadataSchema } from "./http-chat.ts";
import { httpIdSchema, httpTimeSchema } from "./http-error.ts";
import { aliasSchema } from "./http-tables.ts";
import { stopReasons } from "./turn-result.ts";

const fields = {
  id: httpIdSchema,
  title: z.string(),
  createdAt: httpTimeSchema,
  updatedAt: httpTimeSchema,
  runningTurnId: z.string().nullable(),
};

const summary = z.strictObject({
  ...fields,
  turns: z.int().nonnegative(),
  /** Of the latest turn; null while it runs. */
  stopReason: z.enum(stopReasons).nullable(),
  /** The text around the match of a search. */
  snippet: z.string().optional(),
});

export const conversationListSchema = z.strictObject({
  conversations: z.array(summary),
  /** The parameter `before` of the next page; null on the last page. */
  next: z.string().nullable(),
});

/** A message in the form of the AI SDK's `useChat`. http-chat.ts has its data parts. */
const message = z.strictObject({
  /** `<turnId>.user` for the question, `<turnId>` for the answer. */
  id: z.string(),
  role: z.enum(["user", "assistant"]),
  metadata: chatMetadataSchema.optional(),
  parts: z.array(z.looseObject({ type: z.string() })),
});

export const conversationSchema = z.strictObject({ ...fields, messages: z.array(message), aliases: z.array(aliasSchema) });

/** Body of `PATCH /api/conversations/:id`. */
export const conversationChangeSchema = z.strictObject({ title: z.string().trim().min(1).max(200) });

export type ConversationSummary = z.infer<typeof summary>;
export type ConversationList = z.infer<typeof conversationListSchema>;
export type ConversationMessage = z.infer<typeof message>;
export type ConversationDocument = z.infer<typeof conversationSchema>;
