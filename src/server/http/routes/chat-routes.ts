import { createUIMessageStreamResponse, type UIMessageChunk } from "ai";
import { type ChatMetadata, type ChatRequest, chatRequestSchema } from "../../../protocol/http-chat.ts";
import { maxQuestionCharacters } from "../../../protocol/http-turns.ts";
import { HttpFailure } from "../http-failure.ts";
import type { History, StoredEvent, StoredTurn } from "../../../history/history.ts";
import type { ServerParts } from "../open-parts.ts";
import { followStream, type LiveTurn } from "../turns/create-live-turn.ts";
import type { Route } from "./route.ts";
import type { ConversationMessage } from "../../../protocol/http-conversations.ts";
import type { TurnEvent } from "../../../protocol/turn-events.ts";

const MAX_CHAT_BYTES = 16 * 1024 * 1024;
const KEEP_ALIVE_MS = 15_000;
const stream = { description: "The turn as an AI SDK UI message stream.", contentType: "text/event-stream" };

/** For the AI SDK's `useChat` of any page: a question in, a stream of parts out, and the same stream again for a page that was loaded anew. */
export function chatRoutes({ history, turns }: Pick<ServerParts, "history" | "turns">): Route[] {
  return [
    {
      method: "post",
      path: "/api/chat",
      operationId: "chat",
      beginsWork: {},
      summary: "Ask, and follow the answer. Of the messages only the last of the user is read; the rest is the server's own history.",
      body: chatRequestSchema,
      maxBodyBytes: MAX_CHAT_BYTES,
      answers: { 200: stream },
      async handle({ body, principal: { tenant, tokenHash }, signal }) {
        const request = body as ChatRequest;
        const { question, supersedes } = readQuestion(history, tenant, request);
        const turn = await turns.start({
          tenant,
          tokenHash,
          conversationId: request.id,
          question,
          supersedes,
          isAttended: true,
          signal,
        });
        return toStream(history, turn, signal);
      },
    },
    {
      method: "get",
      path: "/api/chat/{conversationId}/stream",
      operationId: "resumeChat",
      summary: "The stream of the turn that runs, from its beginning.",
      answers: { 200: stream, 204: { description: "No turn of the conversation runs." } },
      handle({ parameters, principal: { tenant }, signal }) {
        const turn = turns.findRunning(tenant, parameters["conversationId"]!);
        return turn === null ? new Response(null, { status: 204 }) : toStream(history, turn, signal);
      },
    },
  ];
}

function toStream(history: History, turn: LiveTurn, signal: AbortSignal): Response {
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
function readQuestion(history: History, tenant: string, request: ChatRequest): { question: string; supersedes: string[] } {
  const earlier = history.turns.listByConversation(tenant, request.id);
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
  return new HttpFailure({ code: "REQUEST_INVALID", message });
}

/** The events of a turn as the AI SDK's UI message stream: data parts one to one, the answer as text. Made anew for each listener. */
export interface ChatChunks {
  begin(): UIMessageChunk[];
  of(stored: StoredEvent): UIMessageChunk[];
}

const ANSWER = "answer";

function createChatChunks(metadata: ChatMetadata): ChatChunks {
  let isAnswering = false;

  function endAnswer(): UIMessageChunk[] {
    const wasAnswering = isAnswering;
    isAnswering = false;
    return wasAnswering ? [{ type: "text-end", id: ANSWER }] : [];
  }

  return {
    begin: () => [{ type: "start", messageId: metadata.turnId, messageMetadata: metadata }],
    of({ at, event }) {
      if (event.type === "answer-delta") {
        const start: UIMessageChunk[] = isAnswering ? [] : [{ type: "text-start", id: ANSWER }];
        isAnswering = true;
        return [...start, { type: "text-delta", id: ANSWER, delta: event.text }];
      }
      if (event.type !== "turn-end") return [toPart(event, at)];
      const { gaps, outcome } = event.result;
      return [
        ...endAnswer(),
        { type: "data-gaps", data: { gaps, at } },
        toPart(event, at),
        { type: "finish", messageMetadata: { ...metadata, status: "ended", stopReason: outcome.stopReason } satisfies ChatMetadata },
      ];
    },
  };
}

function toPart(event: TurnEvent, at: string): UIMessageChunk {
  const { type, ...data } = event;
  const id = partId(event);
  return { type: `data-${type}`, ...(id === null ? {} : { id }), data: { ...data, at } };
}

/** A part with an id takes the place of the one before it. */
function partId(event: TurnEvent): string | null {
  if (event.type === "tool-progress") return `progress:${event.callId}`;
  if (event.type === "approval-request") return `approval:${event.approvalId}`;
  return event.type === "artifact" ? `artifact:${event.artifact.contentHash}` : null;
}

/** A kept turn as two messages, with the very parts that a listener would have collected from its stream. */
export function toChatMessages(turn: StoredTurn, events: readonly StoredEvent[]): ConversationMessage[] {
  const { turnId, question } = turn;
  const metadata = toChatMetadata(turn);
  const chunks = createChatChunks(metadata);
  const parts = collect(events.flatMap((stored) => chunks.of(stored)));
  return [
    { id: `${turnId}.user`, role: "user", parts: [{ type: "text", text: question }] },
    { id: turnId, role: "assistant", metadata, parts },
  ];
}

function toChatMetadata({ turnId, conversationId, status, createdAt, stopReason }: StoredTurn): ChatMetadata {
  return { turnId, conversationId, status, createdAt, ...(stopReason === null ? {} : { stopReason }) };
}

function collect(chunks: readonly UIMessageChunk[]): ConversationMessage["parts"] {
  const parts: ConversationMessage["parts"] = [];
  for (const chunk of chunks) {
    if (chunk.type === "text-start") parts.push({ type: "text", text: "", state: "done" });
    else if (chunk.type === "text-delta") {
      const text = parts.findLast(({ type }) => type === "text")!;
      text["text"] = `${String(text["text"])}${chunk.delta}`;
    } else if (chunk.type.startsWith("data-")) {
      const { type, id, data } = chunk as { type: string; id?: string; data: unknown };
      const before = id === undefined ? undefined : parts.find((part) => part["type"] === type && part["id"] === id);
      if (before === undefined) parts.push({ type, ...(id === undefined ? {} : { id }), data });
      else before["data"] = data;
    }
  }
  return parts;
}
