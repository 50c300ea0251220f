import type { StoredEvent, StoredTurn } from "../../history/contract.ts";
import type { ServerParts } from "../server-parts.ts";
import { eventWithOrigin } from "../turns/to-turn-document.ts";
import type { RouteRequest } from "./define-route.ts";
import { originOf } from "./origin-of.ts";

const KEEP_ALIVE_MS = 15_000;

export function wantsEvents(request: Request): boolean {
  return (request.headers.get("accept") ?? "").includes("text/event-stream");
}

/** Server-sent events: those that were, then those that come. A client that lost the connection says which it saw last, and misses none. */
export function eventStream(
  { history, turns }: ServerParts,
  { tenant, turnId }: StoredTurn,
  { request, query, signal }: RouteRequest,
): Response {
  const after = Number(request.headers.get("last-event-id") ?? query["after"] ?? 0) || 0;
  const origin = originOf(request);
  const gone = new AbortController();
  const live = turns.find(tenant, turnId);
  const events =
    live === null
      ? history.events.read({ tenant, turnId, after }).values()
      : live.follow(Math.min(after, live.events.length), AbortSignal.any([signal, gone.signal]));
  const encoder = new TextEncoder();
  let alive: NodeJS.Timeout | undefined;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (alive === undefined) {
          // Not before somebody reads: the body of a HEAD is dropped without a word.
          alive = setInterval(() => controller.enqueue(encoder.encode(": still here\n\n")), KEEP_ALIVE_MS).unref();
          return controller.enqueue(encoder.encode("retry: 1000\n\n"));
        }
        const { done, value } = await events.next();
        if (!done) return controller.enqueue(encoder.encode(toText(value, origin)));
        clearInterval(alive);
        controller.close();
      },
      async cancel() {
        clearInterval(alive);
        gone.abort();
        await events.return?.(); // a listener that was between two events is none any more, either
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store", "x-accel-buffering": "no" },
  });
}

function toText({ seq, at, event }: StoredEvent, origin: string): string {
  return `id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify({ ...eventWithOrigin(event, origin), at })}\n\n`;
}
