import type { UIMessageChunk } from "ai";
import type { StoredEvent, StoredTurn } from "../../history/contract.ts";
import type { ChatMetadata } from "../../protocol/http-chat.ts";
import type { ConversationMessage } from "../../protocol/http-conversations.ts";
import { createChatChunks } from "./to-chat-chunks.ts";

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

function collect(chunks: readonly UIMessageChunk[]): Record<string, unknown>[] {
  const parts: Record<string, unknown>[] = [];
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
