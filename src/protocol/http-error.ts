import { z } from "zod";

/** Body of every error response. `code` is stable, so that programs can branch on it. */
export const httpErrorSchema = z.strictObject({
  error: z.strictObject({
    code: z.string().min(1),
    message: z.string().min(1),
    hint: z.string().optional(),
    details: z.record(z.string(), z.unknown()).optional(),
  }),
});

export type HttpErrorBody = z.infer<typeof httpErrorSchema>;

/** Ids of conversations and turns in URLs. A client may choose the id of a conversation. */
export const httpIdSchema = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/, "must be 1 to 128 letters, digits, - or _");

/** A time: ISO 8601, UTC. */
export const httpTimeSchema = z.iso.datetime();
