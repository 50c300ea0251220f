import { isRecord } from "../../../errors/is-record.ts";

/** What a POST asks, read from a copy of its body. Whatever is wrong with it is for the transport to say. */
export async function requestIdsOf(
  request: Request,
  maxBytes: number,
): Promise<{ readonly isInitialize: boolean; readonly ids: readonly (string | number)[] }> {
  const nothing = { isInitialize: false, ids: [] };
  if (request.method !== "POST" || Number(request.headers.get("content-length") ?? 0) > maxBytes) return nothing;
  let body: unknown;
  try {
    body = await request.clone().json();
  } catch {
    return nothing;
  }
  const messages = (Array.isArray(body) ? body : [body]).filter(isRecord);
  return {
    isInitialize: messages.some(({ method }) => method === "initialize"),
    ids: messages.flatMap(({ id, method }) =>
      typeof method === "string" && (typeof id === "string" || typeof id === "number") ? [id] : [],
    ),
  };
}
