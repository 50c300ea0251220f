import { ellipsize } from "../text/clip-text.ts";

/** One sentence about a foreign error, without its stack and without anything that could hold a key: the body of a request is not read. */
export function describeError(error: unknown): string {
  const words = error instanceof Error ? error.message || error.name : String(error);
  const status = statusOf(error);
  const line = words.split("\n", 1)[0]!.trim() || "it did not say why";
  const clipped = ellipsize(line, 300);
  return status === null || clipped.includes(String(status)) ? clipped : `${clipped} (HTTP ${status})`;
}

function statusOf(error: unknown): number | null {
  if (typeof error !== "object" || error === null) return null;
  if ("statusCode" in error && typeof error.statusCode === "number") return error.statusCode;
  return "lastError" in error ? statusOf(error.lastError) : null;
}

/** Why an answer that came to an end is not whole; null when it is. Errors have a part of their own in the stream. */
export function describeFinish(finishReason: string): string | null {
  if (finishReason === "length") return "The model's answer was cut off at its limit of output.";
  return finishReason === "content-filter" ? "The provider's content filter ended the model's answer." : null;
}

/** With an end, so that another sentence can follow. */
export function asSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
