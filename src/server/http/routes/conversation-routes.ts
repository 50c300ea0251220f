import { z } from "zod";
import type { StoredConversation } from "../../../history/history.ts";
import {
  conversationChangeSchema,
  conversationListSchema,
  conversationSchema,
  type ConversationDocument,
} from "../../../protocol/http-conversations.ts";
import { describeAliases } from "../conversations.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";
import { toChatMessages } from "./chat-routes.ts";
import { json, type Route, type RouteRequest } from "./route.ts";

type ConversationParts = Pick<ServerParts, "history" | "turns" | "conversations" | "storesOf">;

const document = { description: "The conversation.", schema: conversationSchema };

/** Lists, reads, renames and deletes conversations. */
export function conversationRoutes(parts: ConversationParts): Route[] {
  return [
    {
      method: "get",
      path: "/api/conversations",
      operationId: "listConversations",
      summary: "List conversations, most recently used first. `q` searches titles, questions and answers.",
      query: z.object({
        q: z.string().max(200).optional(),
        limit: z.coerce.number().int().min(1).max(200).default(50),
        before: z.string().max(600).optional(),
      }),
      responses: { 200: { description: "One page of conversations.", schema: conversationListSchema } },
      handle: (request) => listConversations(parts, request),
    },
    {
      method: "get",
      path: "/api/conversations/{conversationId}",
      operationId: "getConversation",
      summary: "Get a conversation with its aliases and its messages, in the form that `useChat` uses.",
      responses: { 200: document },
      handle: (request) => readConversation(parts, findConversation(parts, request)),
    },
    {
      method: "patch",
      path: "/api/conversations/{conversationId}",
      operationId: "renameConversation",
      summary: "Change the title of a conversation.",
      body: conversationChangeSchema,
      responses: { 200: document },
      handle: (request) => renameConversation(parts, request),
    },
    {
      method: "delete",
      path: "/api/conversations/{conversationId}",
      operationId: "deleteConversation",
      summary: "Delete a conversation with its turns and everything that only it uses. Running and queued turns are stopped first.",
      responses: { 204: { description: "The conversation was deleted." } },
      handle: (request) => deleteConversation(parts, request),
    },
  ];
}

function listConversations({ history, turns }: ConversationParts, { query, principal: { tenant } }: RouteRequest): Response {
  const { q, limit, before } = query as { q?: string; limit: number; before?: string };
  const { items, next } = history.conversations.list({ tenant, limit, before, search: q });
  const conversations = items.map(({ id, title, createdAt, updatedAt, turns: count, stopReason, snippet }) => ({
    id,
    title,
    createdAt,
    updatedAt,
    turns: count,
    runningTurnId: turns.findRunning(tenant, id)?.turnId ?? null,
    stopReason,
    snippet: snippet ?? undefined,
  }));
  return json({ conversations, next });
}

async function readConversation(
  { history, turns, conversations }: ConversationParts,
  { tenant, id, title, createdAt, updatedAt }: StoredConversation,
): Promise<Response> {
  const aliases = await conversations.use({ tenant, id }, async (live) => describeAliases(live, history));
  const messages = history.turns
    .listByConversation(tenant, id)
    .flatMap((turn) => toChatMessages(turn, history.events.read({ tenant, turnId: turn.turnId })));
  const runningTurnId = turns.findRunning(tenant, id)?.turnId ?? null;
  return json({ id, title, createdAt, updatedAt, runningTurnId, messages, aliases } satisfies ConversationDocument);
}

function renameConversation(parts: ConversationParts, request: RouteRequest): Promise<Response> {
  const { tenant, id } = findConversation(parts, request);
  parts.history.conversations.rename(tenant, id, (request.body as { title: string }).title);
  return readConversation(parts, findConversation(parts, request));
}

async function deleteConversation(parts: ConversationParts, request: RouteRequest): Promise<Response> {
  const { history, conversations, storesOf } = parts;
  const { tenant, id } = findConversation(parts, request);
  await conversations.remove({ tenant, id }, () => {
    history.references.deleteConversation(tenant, id, (files) => storesOf(tenant).remove(files));
  });
  return new Response(null, { status: 204 });
}

function findConversation({ history }: ConversationParts, { parameters, principal }: RouteRequest): StoredConversation {
  const id = parameters["conversationId"]!;
  const conversation = history.conversations.get(principal.tenant, id);
  if (conversation === null) throw conversationNotFound(id);
  return conversation;
}

export function conversationNotFound(id: string): HttpFailure {
  return new HttpFailure({ code: "CONVERSATION_NOT_FOUND", message: `Conversation ${id} does not exist.` });
}
