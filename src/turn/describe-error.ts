/** One sentence about a foreign error, without its stack and without anything that could hold a key: the body of a request is not read. */
export function describeError(error: unknown): string {
  const words = error instanceof Error ? error.message || error.name : String(error);
  const status = statusOf(error);
  const line = words.split("\n", 1)[0]!.trim() || "it did not say why";
  const clipped = line.length <= 300 ? line : `${line.slice(0, 299)}…`;
  return status === null || clipped.includes(String(status)) ? clipped : `${clipped} (HTTP ${status})`;
}

function statusOf(error: unknown): number | null {
  if (typeof error !== "object" || error === null) return null;
  if ("statusCode" in error && typeof error.statusCode === "number") return error.statusCode;
  return "lastError" in error ? statusOf(error.lastError) : null;
}
