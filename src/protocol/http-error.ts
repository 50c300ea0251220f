import { z } from "zod";

/** Every answer of the server that is not what was asked for. `code` is stable and is what programs branch on. */
export const httpErrorSchema = z.strictObject({
  error: z.strictObject({
    code: z.string().min(1),
    message: z.string().min(1),
    /** What to do about it. */
    hint: z.string().optional(),
    details: z.record(z.string(), z.unknown()).optional(),
  }),
});

export type HttpErrorBody = z.infer<typeof httpErrorSchema>;

/** Ids of conversations and turns as they stand in addresses. A client may choose a conversation's. */
export const httpIdSchema = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/, "must be 1 to 128 letters, digits, - or _");

/** When something happened: ISO 8601, UTC. */
export const httpTimeSchema = z.iso.datetime();
