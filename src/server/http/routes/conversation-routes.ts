import { z } from "zod";
import {
  conversationChangeSchema,
  conversationListSchema,
  conversationSchema,
  type ConversationDocument,
} from "../../../protocol/http-conversations.ts";
import type { StoredConversation } from "../../../history/history.ts";
import { toAliases } from "../conversations.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";
import { toChatMessages } from "./chat-routes.ts";
import { json, type Route, type RouteRequest } from "./route.ts";

const document = { description: "The conversation.", schema: conversationSchema };

/** Conversations as a page shows them: found, read, renamed, removed. */
export function conversationRoutes({
  history,
  turns,
  conversations,
  storesOf,
}: Pick<ServerParts, "history" | "turns" | "conversations" | "storesOf">): Route[] {
  function find({ parameters, principal }: RouteRequest): StoredConversation {
    return history.conversations.get(principal.tenant, parameters["conversationId"]!) ?? noConversation(parameters["conversationId"]!);
  }

  async function read({ tenant, id, title, createdAt, updatedAt }: StoredConversation): Promise<Response> {
    const aliases = await conversations.use({ tenant, id }, async (live) => toAliases(live, history));
    const messages = history.turns
      .listByConversation(tenant, id)
      .flatMap((turn) => toChatMessages(turn, history.events.read({ tenant, turnId: turn.turnId })));
    const runningTurnId = turns.findRunning(tenant, id)?.turnId ?? null;
    return json({ id, title, createdAt, updatedAt, runningTurnId, messages, aliases } satisfies ConversationDocument);
  }

  return [
    {
      method: "get",
      path: "/api/conversations",
      operationId: "listConversations",
      summary: "Conversations, the last used first; with `q`, those whose title, questions or answers have it.",
      query: z.object({
        q: z.string().max(200).optional(),
        limit: z.coerce.number().int().min(1).max(200).default(50),
        before: z.string().max(600).optional(),
      }),
      answers: { 200: { description: "One page of conversations.", schema: conversationListSchema } },
      handle({ query, principal: { tenant } }) {
        const { q, limit, before } = query as { q?: string; limit: number; before?: string };
        const { items, next } = history.conversations.list({ tenant, limit, before, search: q });
        const found = items.map(({ id, title, createdAt, updatedAt, turns: count, snippet }) => ({
          id,
          title,
          createdAt,
          updatedAt,
          turns: count,
          runningTurnId: turns.findRunning(tenant, id)?.turnId ?? null,
          ...(snippet === null ? {} : { snippet }),
        }));
        return json({ conversations: found, next });
      },
    },
    {
      method: "get",
      path: "/api/conversations/{conversationId}",
      operationId: "getConversation",
      summary: "A conversation with its messages, as `useChat` keeps them, and its aliases.",
      answers: { 200: document },
      handle: (request) => read(find(request)),
    },
    {
      method: "patch",
      path: "/api/conversations/{conversationId}",
      operationId: "renameConversation",
      summary: "Give a conversation another title.",
      body: conversationChangeSchema,
      answers: { 200: document },
      handle(request) {
        const { tenant, id } = find(request);
        history.conversations.rename(tenant, id, (request.body as { title: string }).title);
        return read(find(request));
      },
    },
    {
      method: "delete",
      path: "/api/conversations/{conversationId}",
      operationId: "deleteConversation",
      summary: "Remove a conversation with its turns and everything that only it uses. What runs or waits in it is ended first.",
      answers: { 204: { description: "It is gone." } },
      async handle(request) {
        const { tenant, id } = find(request);
        await conversations.remove({ tenant, id }, () => {
          history.references.deleteConversation(tenant, id, (files) => storesOf(tenant).remove(files));
        });
        return new Response(null, { status: 204 });
      },
    },
  ];
}

export function noConversation(id: string): never {
  throw new HttpFailure({ code: "CONVERSATION_NOT_FOUND", message: `There is no conversation ${id}.` });
}
