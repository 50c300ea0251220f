/** The same response, which says when the last byte of it was taken, or nobody wants it any more. */
export function afterBody({ body, status, headers }: Response, onOver: () => void): Response {
  if (body === null) onOver();
  const watched = body?.pipeThrough(new TransformStream({ flush: onOver, cancel: onOver })) ?? null;
  return new Response(watched, { status, headers: new Headers(headers) });
}
