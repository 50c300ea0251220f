import { createUIMessageStreamResponse, type UIMessageChunk } from "ai";
import { chatRequestSchema, type ChatRequest } from "../../protocol/http-chat.ts";
import { maxQuestionCharacters } from "../../protocol/http-turns.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../server-parts.ts";
import type { LiveTurn } from "../turns/create-live-turn.ts";
import { createChatChunks } from "../turns/to-chat-chunks.ts";
import { defineRoute, type Route } from "./define-route.ts";
import { followStream } from "./follow-stream.ts";

const MAX_CHAT_BYTES = 16 * 1024 * 1024;
const KEEP_ALIVE_MS = 15_000;
const stream = { description: "The turn as an AI SDK UI message stream.", contentType: "text/event-stream" };

/** For the AI SDK's `useChat` of any page: a question in, a stream of parts out, and the same stream again for a page that was loaded anew. */
export function chatRoutes(parts: ServerParts): Route[] {
  return [
    defineRoute({
      method: "post",
      path: "/api/chat",
      operationId: "chat",
      beginsWork: {},
      summary: "Ask, and follow the answer. Of the messages only the last of the user is read; the rest is the server's own history.",
      tag: "chat",
      body: chatRequestSchema,
      maxBodyBytes: MAX_CHAT_BYTES,
      answers: { 200: stream },
      async handle({ body, principal: { tenant, tokenHash }, signal }) {
        const request = body as ChatRequest;
        const { question, supersedes } = readQuestion(parts, tenant, request);
        const turn = await parts.turns.start({
          tenant,
          tokenHash,
          conversationId: request.id,
          question,
          supersedes,
          isAttended: true,
          signal,
        });
        return toStream(parts, turn, signal);
      },
    }),
    defineRoute({
      method: "get",
      path: "/api/chat/{conversationId}/stream",
      operationId: "resumeChat",
      summary: "The stream of the turn that runs, from its beginning.",
      tag: "chat",
      answers: { 200: stream, 204: { description: "No turn of the conversation runs." } },
      handle({ parameters, principal: { tenant }, signal }) {
        const turn = parts.turns.ofConversation(tenant, parameters["conversationId"]!);
        return turn === null ? new Response(null, { status: 204 }) : toStream(parts, turn, signal);
      },
    }),
  ];
}

function toStream({ history }: ServerParts, turn: LiveTurn, signal: AbortSignal): Response {
  const { tenant, turnId, conversationId } = turn;
  const createdAt = history.turns.get(tenant, turnId)?.createdAt ?? new Date().toISOString();
  const chunks = createChatChunks({ turnId, conversationId, status: "running", createdAt });
  const body = followStream<UIMessageChunk>({
    signal,
    open: (ended) => turn.follow(0, ended),
    begin: chunks.begin(),
    toChunks: (event) => chunks.of(event),
  });
  return createUIMessageStreamResponse({ stream: body, keepAliveMs: KEEP_ALIVE_MS, headers: { "cache-control": "no-store" } });
}

/** The question, and the turns that it is asked instead of. */
function readQuestion({ history }: ServerParts, tenant: string, request: ChatRequest): { question: string; supersedes: string[] } {
  const earlier = history.turns.ofConversation(tenant, request.id);
  const from = (id: string | undefined): string[] => {
    const at = id === undefined ? -1 : earlier.findIndex(({ turnId }) => id === turnId || id === `${turnId}.user`);
    return at === -1 ? [] : earlier.slice(at).map(({ turnId }) => turnId);
  };
  if (request.trigger === "regenerate-message") {
    const supersedes = from(request.messageId ?? earlier.at(-1)?.turnId);
    const again = earlier.find(({ turnId }) => turnId === supersedes[0]);
    if (again === undefined) throw noQuestion("There is no earlier question that could be asked again.");
    return { question: again.question, supersedes };
  }
  const last = request.messages.findLast(({ role }) => role === "user");
  const question = (last?.parts ?? [])
    .flatMap(({ type, text }) => (type === "text" && text !== undefined ? [text] : []))
    .join("\n")
    .trim();
  if (question === "") throw noQuestion("The last message of the user has no text.");
  if (question.length > maxQuestionCharacters)
    throw noQuestion(
      `The question has ${question.length} characters; ${maxQuestionCharacters} are allowed. A data file can be uploaded instead.`,
    );
  return { question, supersedes: from(last?.id) };
}

function noQuestion(message: string): HttpFailure {
  return new HttpFailure({ status: 400, code: "REQUEST_INVALID", message });
}
