/** Reads the body of a request into memory. Returns null if it is larger than `maxBytes`. */
export async function readBody(request: Request, maxBytes: number): Promise<Buffer | null> {
  // Check the header first: as long as nothing has touched `request.body`, the server keeps the connection open.
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) return null;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Returns the same response and calls `onEnd` once: when the last byte was read, or when the reader left or the body failed (`wasCutShort`). */
export function watchBody({ body, status, statusText, headers }: Response, onEnd: (wasCutShort: boolean) => void): Response {
  if (body === null) onEnd(false);
  const watched = body?.pipeThrough(new TransformStream({ flush: () => onEnd(false), cancel: () => onEnd(true) })) ?? null;
  return new Response(watched, { status, statusText, headers });
}
