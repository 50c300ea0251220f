import type { StoredEvent, StoredTurn } from "../../history/contract.ts";
import type { ServerParts } from "../server-parts.ts";
import { eventWithOrigin } from "../turns/to-turn-document.ts";
import type { RouteRequest } from "./define-route.ts";
import { followStream } from "./follow-stream.ts";
import { originOf } from "./origin-of.ts";

const KEEP_ALIVE_MS = 15_000;

export function wantsEvents(request: Request): boolean {
  return (request.headers.get("accept") ?? "").includes("text/event-stream");
}

/** Server-sent events: those that were, then those that come. A client that lost the connection says which it saw last, and misses none. */
export function eventStream(parts: ServerParts, { tenant, turnId }: StoredTurn, { request, query, signal }: RouteRequest): Response {
  const { history, turns } = parts;
  const after = Number(request.headers.get("last-event-id") ?? query["after"] ?? 0) || 0;
  const origin = originOf(parts, request);
  const live = turns.find(tenant, turnId);
  const encoder = new TextEncoder();
  const body = followStream({
    signal,
    open: (ended) =>
      live === null ? history.events.read({ tenant, turnId, after }).values() : live.follow(Math.min(after, live.events.length), ended),
    begin: [encoder.encode("retry: 1000\n\n")],
    toChunks: (event) => [encoder.encode(toText(event, origin))],
    stillHere: { everyMs: KEEP_ALIVE_MS, chunk: encoder.encode(": still here\n\n") },
  });
  return new Response(body, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store", "x-accel-buffering": "no" },
  });
}

function toText({ seq, at, event }: StoredEvent, origin: string): string {
  return `id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify({ ...eventWithOrigin(event, origin), at })}\n\n`;
}
