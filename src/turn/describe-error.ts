import { ellipsize } from "../text/clip-text.ts";

/** Describes a foreign error in one line: its message and HTTP status. Omits the stack and the request body, which could contain a key. */
export function describeError(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error);
  const line = ellipsize(message.split("\n", 1)[0]!.trim() || "no error message", 300);
  const status = httpStatusOf(error);
  return status === null || line.includes(String(status)) ? line : `${line} (HTTP ${status})`;
}

function httpStatusOf(error: unknown): number | null {
  if (typeof error !== "object" || error === null) return null;
  if ("statusCode" in error && typeof error.statusCode === "number") return error.statusCode;
  return "lastError" in error ? httpStatusOf(error.lastError) : null;
}

/** Ends the text with a full stop, unless it ends a sentence already. */
export function asSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
