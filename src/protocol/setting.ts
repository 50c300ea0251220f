import { z } from "zod";

/** The longest time that a timer can hold, 24 days. */
export const maxTimeMs = 2 ** 31 - 1;

/** The numbers of settings. A setting is written once: its schema holds default, bounds and the sentence for docs/configuration.md. */
export const count = z.int().min(1);
export const countOrNone = z.int().min(0);
export const milliseconds = count.max(maxTimeMs);

/** A URL that begins with http:// or https://. */
export const httpUrl = z
  .string()
  .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ""), "must be a URL that begins with http:// or https://");
