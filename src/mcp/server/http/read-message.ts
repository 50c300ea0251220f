import { isRecord } from "../../../errors/is-record.ts";

/** A request whose body was read once for all who look into it. */
export interface ReadMessage {
  /** To go on with: where the body is no JSON it can be read again, by who says what is wrong with it. */
  readonly request: Request;
  /** Undefined for none, and for what is no JSON. */
  readonly body: unknown;
}

/** The message of a POST. Null when it is larger than it may be. */
export async function readMessage(request: Request, maxBytes: number): Promise<ReadMessage | null> {
  if (request.method !== "POST" || request.body === null) return { request, body: undefined };
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) return null;
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of request.body as unknown as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > maxBytes) return null;
    pieces.push(piece);
  }
  const text = Buffer.concat(pieces).toString("utf8");
  try {
    return { request, body: JSON.parse(text) };
  } catch {
    const { method, headers, signal } = request;
    return { request: new Request(request.url, { method, headers, signal, body: text }), body: undefined };
  }
}

/** What a message asks. */
export function requestIdsOf(body: unknown): { readonly isInitialize: boolean; readonly ids: readonly (string | number)[] } {
  const messages = (Array.isArray(body) ? body : [body]).filter(isRecord);
  return {
    isInitialize: messages.some(({ method }) => method === "initialize"),
    ids: messages.flatMap(({ id, method }) =>
      typeof method === "string" && (typeof id === "string" || typeof id === "number") ? [id] : [],
    ),
  };
}
