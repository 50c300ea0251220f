/** The same response, which says once when its last byte was taken, or that its reader left or it broke off before that. */
export function watchBody({ body, status, statusText, headers }: Response, onOver: (wasCutShort: boolean) => void): Response {
  if (body === null) onOver(false);
  const watched = body?.pipeThrough(new TransformStream({ flush: () => onOver(false), cancel: () => onOver(true) })) ?? null;
  return new Response(watched, { status, statusText, headers });
}
