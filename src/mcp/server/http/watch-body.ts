/** The same response, which says when its body is over, and whether its reader left before that. */
export function watchBody(response: Response, onOver: (wasCancelled: boolean) => void): Response {
  const reader = response.body!.getReader();
  let isOver = false;
  const over = (wasCancelled: boolean): void => {
    if (isOver) return;
    isOver = true;
    onOver(wasCancelled);
  };
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        controller.close();
        over(false);
      } catch (error) {
        controller.error(error);
        over(true);
      }
    },
    async cancel(reason) {
      over(true);
      await reader.cancel(reason);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
