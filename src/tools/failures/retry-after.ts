const MAX_SECONDS = 86_400;

/** From a `Retry-After` header, in seconds or as a date, or a number; null when it says nothing. */
export function retryAfterSeconds(value: unknown, now: number): number | null {
  if (typeof value === "number") return within(value);
  if (typeof value !== "string" || value.length > 100) return null;
  const text = value.trim();
  if (/^\d+(?:\.\d+)?$/.test(text)) return within(Number(text));
  // Only what names a month: Date.parse takes "5" and "-3" for years.
  const date = /[A-Za-z]{3}/.test(text) ? Date.parse(text) : Number.NaN;
  return within(Math.ceil((date - now) / 1000));
}

/** A date in the past means now. */
function within(seconds: number): number | null {
  return Number.isFinite(seconds) ? Math.min(Math.max(0, seconds), MAX_SECONDS) : null;
}
