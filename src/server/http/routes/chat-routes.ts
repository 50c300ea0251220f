import { createUIMessageStreamResponse, type UIMessageChunk } from "ai";
import type { History, StoredEvent, StoredTurn } from "../../../history/history.ts";
import { type ChatMetadata, type ChatRequest, chatRequestSchema } from "../../../protocol/http-chat.ts";
import type { ConversationMessage } from "../../../protocol/http-conversations.ts";
import { maxQuestionCharacters } from "../../../protocol/http-turns.ts";
import type { TurnEvent } from "../../../protocol/turn-events.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";
import { createEventStream, type LiveTurn } from "../turns/live-turn.ts";
import type { Route, RouteRequest } from "./route.ts";

const MAX_CHAT_BYTES = 16 * 1024 * 1024;
const KEEP_ALIVE_MS = 15_000;
const stream = { description: "The turn as an AI SDK UI message stream.", contentType: "text/event-stream" };

type ChatParts = Pick<ServerParts, "history" | "turns">;

/** Endpoints for `useChat` of the AI SDK: ask a question and stream the turn, or stream a running turn again after a page reload. */
export function chatRoutes(parts: ChatParts): Route[] {
  return [
    {
      method: "post",
      path: "/api/chat",
      operationId: "chat",
      beginsWork: {},
      summary: "Ask a question and stream the answer. Only the user's last message is read; earlier ones come from the server's history.",
      body: chatRequestSchema,
      maxBodyBytes: MAX_CHAT_BYTES,
      responses: { 200: stream },
      handle: (request) => chat(parts, request),
    },
    {
      method: "get",
      path: "/api/chat/{conversationId}/stream",
      operationId: "resumeChat",
      summary: "Stream the running turn of a conversation from its beginning.",
      responses: { 200: stream, 204: { description: "The conversation has no running turn." } },
      handle: (request) => resumeChat(parts, request),
    },
  ];
}

async function chat({ history, turns }: ChatParts, { body, principal: { tenant, subject }, signal }: RouteRequest): Promise<Response> {
  const request = body as ChatRequest;
  const { question, supersedes } = readQuestion(history, tenant, request);
  const turn = await turns.start({
    tenant,
    subject,
    conversationId: request.id,
    question,
    supersedes,
    timeZone: request.timeZone,
    isAttended: true,
    signal,
  });
  return streamTurn(history, turn, signal);
}

function resumeChat({ history, turns }: ChatParts, { parameters, principal: { tenant }, signal }: RouteRequest): Response {
  const turn = turns.findRunning(tenant, parameters["conversationId"]!);
  return turn === null ? new Response(null, { status: 204 }) : streamTurn(history, turn, signal);
}

function streamTurn(history: History, turn: LiveTurn, signal: AbortSignal): Response {
  const { tenant, turnId, conversationId } = turn;
  const createdAt = history.turns.get(tenant, turnId)?.createdAt ?? new Date().toISOString();
  const chunks = createChatChunks({ turnId, conversationId, status: "running", createdAt });
  const body = createEventStream<UIMessageChunk>({
    signal,
    open: (streamSignal) => turn.follow(0, streamSignal),
    head: chunks.start(),
    toChunks: (event) => chunks.fromEvent(event),
  });
  return createUIMessageStreamResponse({ stream: body, keepAliveMs: KEEP_ALIVE_MS, headers: { "cache-control": "no-store" } });
}

/** The question, and the turns that it replaces. Throws REQUEST_INVALID. */
function readQuestion(history: History, tenant: string, request: ChatRequest): { question: string; supersedes: string[] } {
  const earlier = history.turns.listByConversation(tenant, request.id);
  const turnsFrom = (messageId: string | undefined): string[] => {
    const index = messageId === undefined ? -1 : earlier.findIndex(({ turnId }) => messageId === turnId || messageId === `${turnId}.user`);
    return index === -1 ? [] : earlier.slice(index).map(({ turnId }) => turnId);
  };
  if (request.trigger === "regenerate-message") {
    const supersedes = turnsFrom(request.messageId ?? earlier.at(-1)?.turnId);
    const repeated = earlier.find(({ turnId }) => turnId === supersedes[0]);
    if (repeated === undefined) throw invalidRequest("There is no earlier question to repeat.");
    return { question: repeated.question, supersedes };
  }
  const last = request.messages.findLast(({ role }) => role === "user");
  const question = (last?.parts ?? [])
    .flatMap(({ type, text }) => (type === "text" && text !== undefined ? [text] : []))
    .join("\n")
    .trim();
  if (question === "") throw invalidRequest("The user's last message has no text.");
  if (question.length > maxQuestionCharacters)
    throw invalidRequest(
      `The question has ${question.length} characters; the limit is ${maxQuestionCharacters}. Upload long data as a file instead.`,
    );
  return { question, supersedes: turnsFrom(last?.id) };
}

function invalidRequest(message: string): HttpFailure {
  return new HttpFailure({ code: "REQUEST_INVALID", message });
}

const ANSWER_ID = "answer";

/** Converts the events of a turn to chunks of a UI message stream: one data part per event, and the answer as text. Has state, so use one per stream. */
function createChatChunks(metadata: ChatMetadata) {
  let hasAnswer = false;
  return {
    start: (): UIMessageChunk[] => [{ type: "start", messageId: metadata.turnId, messageMetadata: metadata }],
    fromEvent({ at, event }: StoredEvent): UIMessageChunk[] {
      if (event.type === "answer-delta") {
        const start: UIMessageChunk[] = hasAnswer ? [] : [{ type: "text-start", id: ANSWER_ID }];
        hasAnswer = true;
        return [...start, { type: "text-delta", id: ANSWER_ID, delta: event.text }];
      }
      if (event.type !== "turn-end") return [toPart(event, at)];
      const { gaps, outcome } = event.result;
      const endOfAnswer: UIMessageChunk[] = hasAnswer ? [{ type: "text-end", id: ANSWER_ID }] : [];
      return [
        ...endOfAnswer,
        { type: "data-gaps", data: { gaps, at } },
        toPart(event, at),
        { type: "finish", messageMetadata: { ...metadata, status: "ended", stopReason: outcome.stopReason } satisfies ChatMetadata },
      ];
    },
  };
}

function toPart(event: TurnEvent, at: string): UIMessageChunk {
  const { type, ...data } = event;
  return { type: `data-${type}`, id: partId(event), data: { ...data, at } };
}

/** A part replaces an earlier one with the same id. */
function partId(event: TurnEvent): string | undefined {
  if (event.type === "tool-progress") return `progress:${event.callId}`;
  if (event.type === "approval-request") return `approval:${event.approvalId}`;
  return event.type === "artifact" ? `artifact:${event.artifact.contentHash}` : undefined;
}

/** A stored turn as two messages, with the same parts that a client collects from the stream. */
export function toChatMessages(turn: StoredTurn, events: readonly StoredEvent[]): ConversationMessage[] {
  const { turnId, question } = turn;
  const metadata = toChatMetadata(turn);
  const chunks = createChatChunks(metadata);
  const parts = collectParts(events.flatMap((stored) => chunks.fromEvent(stored)));
  return [
    { id: `${turnId}.user`, role: "user", parts: [{ type: "text", text: question }] },
    { id: turnId, role: "assistant", metadata, parts },
  ];
}

function toChatMetadata({ turnId, conversationId, status, createdAt, stopReason }: StoredTurn): ChatMetadata {
  return { turnId, conversationId, status, createdAt, stopReason: stopReason ?? undefined };
}

function collectParts(chunks: readonly UIMessageChunk[]): ConversationMessage["parts"] {
  const parts: ConversationMessage["parts"] = [];
  for (const chunk of chunks) {
    if (chunk.type === "text-start") parts.push({ type: "text", text: "", state: "done" });
    else if (chunk.type === "text-delta") {
      const text = parts.findLast(({ type }) => type === "text")!;
      text["text"] = `${String(text["text"])}${chunk.delta}`;
    } else if (chunk.type.startsWith("data-")) {
      const { type, id, data } = chunk as { type: string; id?: string; data: unknown };
      const earlier = id === undefined ? undefined : parts.find((part) => part["type"] === type && part["id"] === id);
      if (earlier === undefined) parts.push({ type, id, data });
      else earlier["data"] = data;
    }
  }
  return parts;
}
