import { z } from "zod";

/** The maximum delay of a timer: 24 days. */
export const maxTimeMs = 2 ** 31 - 1;

/** Number schemas of settings. A setting is defined once: its schema has the default, the bounds and the text for docs/configuration.md. */
export const count = z.int().min(1);
export const countOrNone = z.int().min(0);
export const milliseconds = count.max(maxTimeMs);

/** An IANA time zone, such as "Europe/Berlin". */
export const timeZone = z.string().max(100).refine(isTimeZone, 'must be an IANA time zone, such as "Europe/Berlin"');

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

export const httpUrl = z
  .string()
  .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ""), "must be a URL that begins with http:// or https://");
