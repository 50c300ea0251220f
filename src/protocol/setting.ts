import { z } from "zod";

/** The maximum delay of a timer: 24 days. */
export const maxTimeMs = 2 ** 31 - 1;

/** Number schemas of settings. A setting is defined once: its schema has the default, the bounds and the text for docs/configuration.md. */
export const count = z.int().min(1);
export const countOrNone = z.int().min(0);
export const milliseconds = count.max(maxTimeMs);

export const httpUrl = z
  .string()
  .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ""), "must be a URL that begins with http:// or https://");
