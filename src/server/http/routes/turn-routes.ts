import { createHash, randomUUID } from "node:crypto";
import { z } from "zod";
import type { StoredEvent, StoredTurn } from "../../../history/history.ts";
import {
  approvalAnswerSchema,
  approvalTakenSchema,
  turnCreationSchema,
  turnDocumentSchema,
  turnListSchema,
  turnStatuses,
  turnStopSchema,
  type TurnCreation,
  type TurnStatus,
} from "../../../protocol/http-turns.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";
import { followStream, type LiveTurn } from "../turns/create-live-turn.ts";
import { eventWithOrigin, findEndedTurn, findTurn, toTurnDocument, toTurnSummary } from "../turns/to-turn-document.ts";
import { json, type Route, type RouteRequest, originOf } from "./route.ts";

const KEEP_ALIVE_MS = 15_000;
const document = { description: "The turn.", schema: turnDocumentSchema };
const events = { description: "Events of the turn, each with its number as id.", contentType: "text/event-stream" };
const lastEventId = { name: "Last-Event-ID", description: "The number of the last event that was seen; what comes after it is sent." };
const after = z.object({ after: z.coerce.number().int().nonnegative().optional() });

type TurnParts = Pick<ServerParts, "history" | "turns" | "conversations" | "storesOf" | "publicUrl">;

/** Turns for programs: begin one, look at it, follow it, answer what it asks, end it, remove it. */
export function turnRoutes(parts: TurnParts): Route[] {
  const beginning = new Map<string, Promise<LiveTurn>>();
  return [
    {
      method: "post",
      path: "/api/turns",
      operationId: "createTurn",
      beginsWork: {},
      summary: "Ask a question. It is answered whether or not anybody listens, within the time that a turn has.",
      body: turnCreationSchema,
      headers: [
        {
          name: "Idempotency-Key",
          description: "A request with the same key is the same request: it gives the turn that the first one began.",
        },
      ],
      answers: {
        202: document,
        200: { description: "The turn, ended: `wait` was asked for, or the key was seen before.", schema: turnDocumentSchema },
      },
      handle: async (request) => await create(parts, request, beginning),
    },
    {
      method: "get",
      path: "/api/turns",
      operationId: "listTurns",
      summary: "Turns, the latest first.",
      query: z.object({
        conversationId: z.string().optional(),
        status: z.enum(turnStatuses).optional(),
        limit: z.coerce.number().int().min(1).max(200).default(50),
        before: z.string().max(300).optional(),
      }),
      answers: { 200: { description: "One page of turns.", schema: turnListSchema } },
      handle: (request) => list(parts, request),
    },
    {
      method: "get",
      path: "/api/turns/{turnId}",
      operationId: "getTurn",
      summary: "A turn; with `Accept: text/event-stream`, its events.",
      query: after,
      headers: [lastEventId],
      answers: { 200: document },
      handle: (request) => (wantsEvents(request) ? eventStream(parts, request) : show(parts, find(parts, request), request)),
    },
    {
      method: "get",
      path: "/api/turns/{turnId}/events",
      operationId: "followTurn",
      summary: "The events of a turn from its beginning, or from after the last one that was seen, until it has ended.",
      query: after,
      headers: [lastEventId],
      answers: { 200: events },
      handle: (request) => eventStream(parts, request),
    },
    {
      method: "post",
      path: "/api/turns/{turnId}/stop",
      operationId: "stopTurn",
      summary: "End a turn. It still gives a result, with what there is.",
      answers: { 202: { description: "It is being ended, or had ended.", schema: turnStopSchema } },
      handle: (request) => stop(parts, request),
    },
    {
      method: "post",
      path: "/api/turns/{turnId}/approvals/{approvalId}",
      operationId: "answerApproval",
      summary: "Allow or refuse a call that the turn waits with.",
      body: approvalAnswerSchema,
      answers: { 200: { description: "The answer was taken.", schema: approvalTakenSchema } },
      handle: (request) => answerApproval(parts, request),
    },
    {
      method: "delete",
      path: "/api/turns/{turnId}",
      operationId: "deleteTurn",
      summary: "Remove a turn that has ended, with everything that only it uses.",
      answers: { 204: { description: "It is gone." } },
      handle: async (request) => await remove(parts, request),
    },
  ];
}

function find(parts: TurnParts, { parameters, principal }: RouteRequest): StoredTurn {
  return findTurn(parts, principal.tenant, parameters["turnId"]!);
}

function show(parts: TurnParts, turn: StoredTurn, { request }: RouteRequest, answer: Parameters<typeof json>[1] = {}): Response {
  return json(toTurnDocument(parts, turn, originOf(parts.publicUrl, request)), answer);
}

/** `beginning`: turns with a key that wait in line and have no row yet, so that the same key does not begin a second one meanwhile. */
async function create(parts: TurnParts, asked: RouteRequest, beginning: Map<string, Promise<LiveTurn>>): Promise<Response> {
  const { history, turns } = parts;
  const { body, request, principal, signal } = asked;
  const { question, conversationId, wait = false } = body as TurnCreation;
  const { tenant, tokenHash } = principal;
  const key = request.headers.get("idempotency-key");
  if (key !== null && key.length > 200)
    throw new HttpFailure({ code: "REQUEST_INVALID", message: "The Idempotency-Key is longer than 200 characters." });
  const requestHash = createHash("sha256")
    .update(JSON.stringify([question, conversationId ?? null]))
    .digest("hex");
  const place = JSON.stringify([tenant, key]);
  for (let first = beginning.get(place); first !== undefined; first = beginning.get(place)) await first.catch(() => null);
  // From here to where it is set nothing is awaited: of those who waited for one that was refused, the next begins it and the others wait again.
  const earlier = key === null ? null : history.turns.findByIdempotencyKey(tenant, key);
  if (earlier !== null) {
    if (earlier.requestHash !== requestHash) {
      const message = "This Idempotency-Key came with another request before.";
      throw new HttpFailure({ code: "IDEMPOTENCY_KEY_REUSED", message, hint: "Use a new key for a new question." });
    }
    const turn = history.turns.get(tenant, earlier.turnId)!;
    return show(parts, turn, asked, { status: turn.status === "running" ? 202 : 200 });
  }
  const begun = turns.start({
    tenant,
    tokenHash,
    conversationId: conversationId ?? randomUUID(),
    question,
    isAttended: wait,
    signal,
    ...(key === null ? {} : { idempotency: { key, requestHash } }),
  });
  if (key !== null) beginning.set(place, begun);
  const turn = await begun.finally(() => beginning.delete(place)); // before anybody hears of it who waits
  if (wait) for await (const _ of turn.follow(0, signal)); // whoever waits is a listener
  const headers = { location: `/api/turns/${turn.turnId}` };
  return show(parts, history.turns.get(tenant, turn.turnId)!, asked, { status: wait ? 200 : 202, headers });
}

function list({ history }: TurnParts, { query, principal: { tenant } }: RouteRequest): Response {
  const { limit, ...rest } = query as { limit: number; before?: string; conversationId?: string; status?: TurnStatus };
  const { items, next } = history.turns.list({ tenant, limit, ...rest });
  return json({ turns: items.map(toTurnSummary), next });
}

function stop(parts: TurnParts, request: RouteRequest): Response {
  const { tenant, turnId, status } = find(parts, request);
  parts.turns.find(tenant, turnId)?.stop("the client stopped the turn");
  return json({ turnId, status }, { status: 202 });
}

function answerApproval(parts: TurnParts, request: RouteRequest): Response {
  const { tenant, turnId } = find(parts, request);
  const approvalId = request.parameters["approvalId"]!;
  const { approved } = request.body as { approved: boolean };
  const isTaken = parts.turns.find(tenant, turnId)?.approvals.answer(approvalId, approved) ?? false;
  if (!isTaken) throw notAsked(parts, { tenant, turnId, approvalId });
  return json({ approvalId, answer: approved ? "approved" : "refused" });
}

function notAsked(
  { history }: TurnParts,
  { tenant, turnId, approvalId }: { tenant: string; turnId: string; approvalId: string },
): HttpFailure {
  const wasAsked = history.events
    .read({ tenant, turnId })
    .some(({ event }) => event.type === "approval-request" && event.approvalId === approvalId);
  if (!wasAsked) return new HttpFailure({ code: "APPROVAL_NOT_FOUND", message: `The turn has not asked ${approvalId}.` });
  return new HttpFailure({ code: "APPROVAL_OVER", message: "Nobody waits for this answer any more: it was given, or the turn is over." });
}

async function remove(parts: TurnParts, { parameters, principal: { tenant } }: RouteRequest): Promise<Response> {
  const { history, conversations, storesOf } = parts;
  const { turnId, conversationId } = findEndedTurn(parts, tenant, parameters["turnId"]!);
  const place = { tenant, id: conversationId };
  await conversations.use(place, async ({ runAgain }) => {
    if (runAgain.includes(turnId))
      throw new HttpFailure({ code: "TURN_RUNNING", message: "A cell of the turn is being run again.", hint: "Wait for its end." });
    history.references.deleteTurn(tenant, turnId, (files) => storesOf(tenant).remove(files));
    conversations.refresh(place);
  });
  return new Response(null, { status: 204 });
}

function wantsEvents({ request }: RouteRequest): boolean {
  return (request.headers.get("accept") ?? "").includes("text/event-stream");
}

/** Server-sent events: those that were, then those that come. A client that lost the connection says which it saw last, and misses none. */
function eventStream(parts: TurnParts, asked: RouteRequest): Response {
  const { history, turns, publicUrl } = parts;
  const { request, query, signal } = asked;
  const { tenant, turnId } = find(parts, asked);
  const after = Number(request.headers.get("last-event-id") ?? query["after"] ?? 0) || 0;
  const origin = originOf(publicUrl, request);
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
