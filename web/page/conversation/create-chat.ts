import { Chat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { chatDataSchemas, chatMetadataSchema } from "../../../src/protocol/http-chat.ts";
import { toError } from "../api/request.ts";
import type { ChatMessage } from "../turn/chat-message.ts";

const { timeZone } = Intl.DateTimeFormat().resolvedOptions();

/** Creates the AI SDK's chat. The server has the history, so only the last question is sent. */
export function createChat(id: string, messages: ChatMessage[], onEnd: () => void): Chat<ChatMessage> {
  return new Chat<ChatMessage>({
    id,
    messages,
    messageMetadataSchema: chatMetadataSchema,
    dataPartSchemas: chatDataSchemas,
    onFinish: onEnd,
    transport: new DefaultChatTransport<ChatMessage>({
      api: "/api/chat",
      prepareSendMessagesRequest: ({ id: conversationId, messages: all, trigger, messageId }) => ({
        body: { id: conversationId, messages: all.filter(({ role }) => role === "user").slice(-1), trigger, messageId, timeZone },
      }),
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        if (!response.ok) throw await toError(response);
        return response;
      },
    }),
  });
}

/** Gives a question the server's id, so that it can be edited and asked again. */
export function nameQuestions(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.map((message, index) => {
    const next = messages[index + 1];
    const turnId = next?.role === "assistant" ? next.metadata?.turnId : undefined;
    return message.role === "user" && turnId !== undefined ? { ...message, id: `${turnId}.user` } : message;
  });
}
