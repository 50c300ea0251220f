import type { UIMessage } from "ai";
import type { ChatData, ChatMetadata } from "../../../src/protocol/http-chat.ts";

export type ChatMessage = UIMessage<ChatMetadata, ChatData>;

export function textOf({ parts }: ChatMessage): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}
