import { z } from "zod";
import { httpIdSchema, httpTimeSchema } from "./http-error.ts";
import { timeZone } from "./setting.ts";
import { turnEventSchema, type TurnEvent } from "./turn-events.ts";
import { gapSchema, stopReasons } from "./turn-result.ts";

const chatRequestMessage = z.looseObject({
  id: z.string().max(300).optional(),
  role: z.string(),
  parts: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })),
});

/** Body of `POST /api/chat`, as the AI SDK's transport sends it. Only the last user message is read. */
export const chatRequestSchema = z.looseObject({
  id: httpIdSchema,
  messages: z.array(chatRequestMessage),
  trigger: z.enum(["submit-message", "regenerate-message"]).optional(),
  /** For the current date that the model reads. Default: the server's. */
  timeZone: timeZone.optional(),
  messageId: z
    .string()
    .max(300)
    .nullish()
    .transform((id) => id ?? undefined),
});

/** Metadata of an assistant message. The id of the message is the turn's id. */
export const chatMetadataSchema = z.strictObject({
  turnId: httpIdSchema,
  conversationId: httpIdSchema,
  status: z.enum(["running", "ended"]),
  createdAt: httpTimeSchema,
  stopReason: z.enum(stopReasons).optional(),
});

export const gapsPartSchema = z.strictObject({ gaps: z.array(gapSchema), at: httpTimeSchema });

export type ChatRequest = z.infer<typeof chatRequestSchema>;
export type ChatRequestMessage = z.infer<typeof chatRequestMessage>;
export type ChatMetadata = z.infer<typeof chatMetadataSchema>;

/** The events that become data parts of a message. Answer deltas become its text. */
export type ChatEvent = Exclude<TurnEvent, { type: "answer-delta" }>;

/** The data of a part: the event without its type, with its time. */
export type ChatData = {
  [Type in ChatEvent["type"]]: Omit<Extract<ChatEvent, { type: Type }>, "type"> & { at: string };
} & { gaps: z.infer<typeof gapsPartSchema> };

const eventTypes = turnEventSchema.options.map(({ shape }) => shape.type.value).filter((type) => type !== "answer-delta");

/** `dataPartSchemas` of the AI SDK's `useChat`. */
export const chatDataSchemas = Object.fromEntries([
  ...eventTypes.map((type) => [type, eventDataSchema(type)]),
  ["gaps", gapsPartSchema],
]) as {
  [Name in keyof ChatData]: z.ZodType<ChatData[Name]>;
};

function eventDataSchema(type: ChatEvent["type"]) {
  return z.custom((data) => {
    if (typeof data !== "object" || data === null) return false;
    const { at, ...event } = data as Record<string, unknown>;
    return httpTimeSchema.safeParse(at).success && turnEventSchema.safeParse({ type, ...event }).success;
  }, `is not the data of the event ${type}`);
}
