import { createHash, randomUUID } from "node:crypto";
import { z } from "zod";
import type { IdempotencyKey, StoredEvent, StoredTurn } from "../../../history/history.ts";
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
import { createEventStream, type LiveTurn } from "../turns/live-turn.ts";
import { eventWithOrigin, findEndedTurn, findTurn, toTurnDocument, toTurnSummary } from "../turns/turn-document.ts";
import { json, originOf, type Route, type RouteRequest } from "./route.ts";

const KEEP_ALIVE_MS = 15_000;
const MAX_KEY_CHARACTERS = 200;
const document = { description: "The turn.", schema: turnDocumentSchema };
const events = { description: "The events of the turn, each with its number as id.", contentType: "text/event-stream" };
const lastEventId = { name: "Last-Event-ID", description: "The number of the last event that the client has. Later events are sent." };
const idempotencyKey = {
  name: "Idempotency-Key",
  description: "Requests with the same key start one turn: a repeated request returns the turn of the first one.",
};
const afterQuery = z.object({ after: z.coerce.number().int().nonnegative().optional() });

type TurnRouteParts = Pick<ServerParts, "history" | "turns" | "conversations" | "storesOf" | "publicUrl">;

/** Turns for programs: start, read, follow, approve, stop and delete. */
export function turnRoutes(parts: TurnRouteParts): Route[] {
  const starting: StartingTurns = new Map();
  return [
    {
      method: "post",
      path: "/api/turns",
      operationId: "createTurn",
      beginsWork: {},
      summary: "Ask a question. The turn runs to its end or its time limit, even if no client listens.",
      body: turnCreationSchema,
      headers: [idempotencyKey],
      responses: {
        202: document,
        200: { description: "The ended turn, for a request with `wait` or with a key that was used before.", schema: turnDocumentSchema },
      },
      handle: (request) => createTurn(parts, request, starting),
    },
    {
      method: "get",
      path: "/api/turns",
      operationId: "listTurns",
      summary: "List turns, latest first.",
      query: z.object({
        conversationId: z.string().optional(),
        status: z.enum(turnStatuses).optional(),
        limit: z.coerce.number().int().min(1).max(200).default(50),
        before: z.string().max(300).optional(),
      }),
      responses: { 200: { description: "One page of turns.", schema: turnListSchema } },
      handle: (request) => listTurns(parts, request),
    },
    {
      method: "get",
      path: "/api/turns/{turnId}",
      operationId: "getTurn",
      summary: "Get a turn. With `Accept: text/event-stream`, stream its events.",
      query: afterQuery,
      headers: [lastEventId],
      responses: { 200: document },
      handle: (request) =>
        acceptsEvents(request) ? streamEvents(parts, request) : turnResponse(parts, findRequestedTurn(parts, request), request),
    },
    {
      method: "get",
      path: "/api/turns/{turnId}/events",
      operationId: "followTurn",
      summary: "Stream the events of a turn until it ends, from the beginning or after a given event.",
      query: afterQuery,
      headers: [lastEventId],
      responses: { 200: events },
      handle: (request) => streamEvents(parts, request),
    },
    ...controlRoutes(parts),
  ];
}

/** Stop a turn, answer its approval requests, delete it. */
function controlRoutes(parts: TurnRouteParts): Route[] {
  return [
    {
      method: "post",
      path: "/api/turns/{turnId}/stop",
      operationId: "stopTurn",
      summary: "Stop a turn. It ends with a result that contains what it has found so far.",
      responses: { 202: { description: "The turn is stopping, or had already ended.", schema: turnStopSchema } },
      handle: (request) => stopTurn(parts, request),
    },
    {
      method: "post",
      path: "/api/turns/{turnId}/approvals/{approvalId}",
      operationId: "answerApproval",
      summary: "Approve or refuse a call for which the turn is waiting.",
      body: approvalAnswerSchema,
      responses: { 200: { description: "The answer was accepted.", schema: approvalTakenSchema } },
      handle: (request) => answerApproval(parts, request),
    },
    {
      method: "delete",
      path: "/api/turns/{turnId}",
      operationId: "deleteTurn",
      summary: "Delete an ended turn with everything that only it uses.",
      responses: { 204: { description: "The turn was deleted." } },
      handle: (request) => deleteTurn(parts, request),
    },
  ];
}

function findRequestedTurn(parts: TurnRouteParts, { parameters, principal }: RouteRequest): StoredTurn {
  return findTurn(parts, principal.tenant, parameters["turnId"]!);
}

function turnResponse(
  parts: TurnRouteParts,
  turn: StoredTurn,
  { request }: RouteRequest,
  options: Parameters<typeof json>[1] = {},
): Response {
  return json(toTurnDocument(parts, turn, originOf(parts.publicUrl, request)), options);
}

/** Queued turns with an idempotency key. They have no row yet, so a second request with the key must find them here. */
type StartingTurns = Map<string, Promise<LiveTurn>>;

async function createTurn(parts: TurnRouteParts, routeRequest: RouteRequest, starting: StartingTurns): Promise<Response> {
  const { history, turns } = parts;
  const { body, principal, signal } = routeRequest;
  const { question, conversationId = randomUUID(), timeZone, wait = false } = body as TurnCreation;
  const { tenant, subject } = principal;
  const idempotency = readIdempotencyKey(routeRequest);
  const startingKey = JSON.stringify([tenant, idempotency?.key ?? null]);
  for (let first = starting.get(startingKey); first !== undefined; first = starting.get(startingKey)) await first.catch(() => null);
  // Nothing may be awaited from here to `starting.set`: if the first request failed, exactly one of those that waited for it starts the turn.
  const earlier = idempotency === undefined ? null : findEarlierTurn(parts, tenant, idempotency);
  if (earlier !== null) return turnResponse(parts, earlier, routeRequest, { status: earlier.status === "running" ? 202 : 200 });
  const started = turns.start({ tenant, subject, conversationId, question, timeZone, isAttended: wait, signal, idempotency });
  if (idempotency !== undefined) starting.set(startingKey, started);
  const turn = await started.finally(() => starting.delete(startingKey));
  if (wait) for await (const _ of turn.follow(0, signal)); // counts as a listener until the turn ends
  const headers = { location: `/api/turns/${turn.turnId}` };
  return turnResponse(parts, history.turns.get(tenant, turn.turnId)!, routeRequest, { status: wait ? 200 : 202, headers });
}

function readIdempotencyKey({ request, body }: RouteRequest): IdempotencyKey | undefined {
  const { question, conversationId = null } = body as TurnCreation;
  const key = request.headers.get("idempotency-key");
  if (key === null) return undefined;
  if (key.length > MAX_KEY_CHARACTERS)
    throw new HttpFailure({ code: "REQUEST_INVALID", message: `The Idempotency-Key is longer than ${MAX_KEY_CHARACTERS} characters.` });
  const requestHash = createHash("sha256")
    .update(JSON.stringify([question, conversationId]))
    .digest("hex");
  return { key, requestHash };
}

/** The turn that an earlier request with the same key started. Throws IDEMPOTENCY_KEY_REUSED if that request was different. */
function findEarlierTurn({ history }: TurnRouteParts, tenant: string, { key, requestHash }: IdempotencyKey): StoredTurn | null {
  const earlier = history.turns.findByIdempotencyKey(tenant, key);
  if (earlier === null) return null;
  if (earlier.requestHash !== requestHash) {
    const message = "This Idempotency-Key was already used for a different request.";
    throw new HttpFailure({ code: "IDEMPOTENCY_KEY_REUSED", message, hint: "Use a new key for a new question." });
  }
  return history.turns.get(tenant, earlier.turnId);
}

function listTurns({ history }: TurnRouteParts, { query, principal: { tenant } }: RouteRequest): Response {
  const { limit, ...rest } = query as { limit: number; before?: string; conversationId?: string; status?: TurnStatus };
  const { items, next } = history.turns.list({ tenant, limit, ...rest });
  return json({ turns: items.map(toTurnSummary), next });
}

function stopTurn(parts: TurnRouteParts, request: RouteRequest): Response {
  const { tenant, turnId, status } = findRequestedTurn(parts, request);
  parts.turns.find(tenant, turnId)?.stop("the client stopped the turn");
  return json({ turnId, status }, { status: 202 });
}

function answerApproval(parts: TurnRouteParts, request: RouteRequest): Response {
  const { tenant, turnId } = findRequestedTurn(parts, request);
  const approvalId = request.parameters["approvalId"]!;
  const { approved } = request.body as { approved: boolean };
  const isAccepted = parts.turns.find(tenant, turnId)?.approvals.answer(approvalId, approved) ?? false;
  if (!isAccepted) throw approvalNotPending(parts, { tenant, turnId, approvalId });
  return json({ approvalId, answer: approved ? "approved" : "refused" });
}

function approvalNotPending(
  { history }: TurnRouteParts,
  { tenant, turnId, approvalId }: { tenant: string; turnId: string; approvalId: string },
): HttpFailure {
  const wasRequested = history.events
    .read({ tenant, turnId })
    .some(({ event }) => event.type === "approval-request" && event.approvalId === approvalId);
  if (!wasRequested) return new HttpFailure({ code: "APPROVAL_NOT_FOUND", message: `The turn has no approval request ${approvalId}.` });
  return new HttpFailure({ code: "APPROVAL_OVER", message: "The approval request was already answered, or the turn has ended." });
}

async function deleteTurn(parts: TurnRouteParts, { parameters, principal: { tenant } }: RouteRequest): Promise<Response> {
  const { history, conversations, storesOf } = parts;
  const { turnId, conversationId } = findEndedTurn(parts, tenant, parameters["turnId"]!);
  const conversation = { tenant, id: conversationId };
  await conversations.use(conversation, async ({ rerunTurnIds }) => {
    if (rerunTurnIds.includes(turnId))
      throw new HttpFailure({ code: "TURN_RUNNING", message: "A cell of the turn is being rerun.", hint: "Wait for it to end." });
    history.references.deleteTurn(tenant, turnId, (files) => storesOf(tenant).remove(files));
    conversations.invalidate(conversation);
  });
  return new Response(null, { status: 204 });
}

function acceptsEvents({ request }: RouteRequest): boolean {
  return (request.headers.get("accept") ?? "").includes("text/event-stream");
}

/** Server-sent events, past and future. A client that reconnects sends the number of the last event that it has, and misses none. */
function streamEvents(parts: TurnRouteParts, routeRequest: RouteRequest): Response {
  const { history, turns, publicUrl } = parts;
  const { request, query, signal } = routeRequest;
  const { tenant, turnId } = findRequestedTurn(parts, routeRequest);
  const after = Number(request.headers.get("last-event-id") ?? query["after"] ?? 0) || 0;
  const origin = originOf(publicUrl, request);
  const live = turns.find(tenant, turnId);
  const encoder = new TextEncoder();
  const body = createEventStream({
    signal,
    open: (streamSignal) =>
      live === null
        ? history.events.read({ tenant, turnId, after }).values()
        : live.follow(Math.min(after, live.events.length), streamSignal),
    head: [encoder.encode("retry: 1000\n\n")],
    toChunks: (event) => [encoder.encode(toServerSentEvent(event, origin))],
    keepAlive: { everyMs: KEEP_ALIVE_MS, chunk: encoder.encode(": still here\n\n") },
  });
  return new Response(body, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store", "x-accel-buffering": "no" },
  });
}

function toServerSentEvent({ seq, at, event }: StoredEvent, origin: string): string {
  return `id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify({ ...eventWithOrigin(event, origin), at })}\n\n`;
}
