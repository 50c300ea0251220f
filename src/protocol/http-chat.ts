import { z } from "zod";
import { httpIdSchema, httpTimeSchema } from "./http-error.ts";
import { turnEventSchema, type TurnEvent } from "./turn-events.ts";
import { gapSchema, stopReasons, type Gap, type StopReason } from "./turn-result.ts";

/** What is read of `POST /api/chat`, as the AI SDK's transport sends it. Of `messages` only the last of the user counts. */
export interface ChatRequest {
  id: string;
  messages: ChatRequestMessage[];
  trigger?: "submit-message" | "regenerate-message" | undefined;
  messageId?: string | undefined;
}

export interface ChatRequestMessage {
  id?: string | undefined;
  role: string;
  parts: { type: string; text?: string | undefined }[];
}

export const chatRequestSchema: z.ZodType<ChatRequest> = z.looseObject({
  id: httpIdSchema,
  messages: z.array(
    z.looseObject({
      id: z.string().max(300).optional(),
      role: z.string(),
      parts: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })),
    }),
  ),
  trigger: z.enum(["submit-message", "regenerate-message"]).optional(),
  messageId: z
    .string()
    .max(300)
    .nullish()
    .transform((id) => id ?? undefined),
});

/** Metadata of an assistant's message: its id is the turn's. */
export interface ChatMetadata {
  turnId: string;
  conversationId: string;
  status: "running" | "ended";
  createdAt: string;
  stopReason?: StopReason | undefined;
}

export const chatMetadataSchema: z.ZodType<ChatMetadata> = z.strictObject({
  turnId: httpIdSchema,
  conversationId: httpIdSchema,
  status: z.enum(["running", "ended"]),
  createdAt: httpTimeSchema,
  stopReason: z.enum(stopReasons).optional(),
});

/** Events of a turn that are data parts of its message. The answer is the message's text. */
export type ChatEvent = Exclude<TurnEvent, { type: "answer-delta" }>;

/** The data of a part: the event without its type, and when it happened. */
export type ChatData = {
  [Type in ChatEvent["type"]]: Omit<Extract<ChatEvent, { type: Type }>, "type"> & { at: string };
} & { gaps: { gaps: Gap[]; at: string } };

export const gapsPartSchema: z.ZodType<ChatData["gaps"]> = z.strictObject({ gaps: z.array(gapSchema), at: httpTimeSchema });

/** `dataPartSchemas` of the AI SDK's `useChat`. */
export const chatDataSchemas: { [Name in keyof ChatData]: z.ZodType<ChatData[Name]> } = {
  "turn-start": ofEvent("turn-start"),
  plan: ofEvent("plan"),
  "step-start": ofEvent("step-start"),
  "tool-start": ofEvent("tool-start"),
  "cell-start": ofEvent("cell-start"),
  "tool-progress": ofEvent("tool-progress"),
  "approval-request": ofEvent("approval-request"),
  "approval-end": ofEvent("approval-end"),
  "tool-end": ofEvent("tool-end"),
  "cell-output": ofEvent("cell-output"),
  artifact: ofEvent("artifact"),
  "turn-end": ofEvent("turn-end"),
  gaps: gapsPartSchema,
};

function ofEvent<Type extends ChatEvent["type"]>(type: Type): z.ZodType<ChatData[Type]> {
  return z.custom<ChatData[Type]>((data) => {
    if (typeof data !== "object" || data === null) return false;
    const { at, ...event } = data as Record<string, unknown>;
    return httpTimeSchema.safeParse(at).success && turnEventSchema.safeParse({ type, ...event }).success;
  }, `is not the data of the event ${type}`);
}
