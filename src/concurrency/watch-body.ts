/** The whole body of a request; null when it is larger than it may be. */
export async function readBody(request: Request, maxBytes: number): Promise<Buffer | null> {
  // `request.body` is not touched before: the server keeps the connection open after a body that nothing began to read.
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) return null;
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > maxBytes) return null;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The same response, which says once when its last byte was taken, or that its reader left or it broke off before that. */
export function watchBody({ body, status, statusText, headers }: Response, onOver: (wasCutShort: boolean) => void): Response {
  if (body === null) onOver(false);
  const watched = body?.pipeThrough(new TransformStream({ flush: () => onOver(false), cancel: () => onOver(true) })) ?? null;
  return new Response(watched, { status, statusText, headers });
}
