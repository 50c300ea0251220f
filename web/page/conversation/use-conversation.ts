import { useCallback, useEffect, useState } from "react";
import type { Chat } from "@ai-sdk/react";
import type { Alias } from "../../../src/protocol/http-tables.ts";
import { ApiError } from "../api/api-error.ts";
import { server } from "../api/server.ts";
import type { ChatMessage } from "../turn/chat-message.ts";
import { createChat } from "./create-chat.ts";

export type Loaded =
  | { readonly state: "loading" }
  | { readonly state: "failed"; readonly error: unknown }
  | { readonly state: "ready"; readonly chat: Chat<ChatMessage>; readonly aliases: readonly Alias[] };

/** Loads a conversation; one that the server does not know yet is empty. */
export function useConversation(id: string, isNew: boolean, onEnd: () => void): { loaded: Loaded; refreshAliases(): void } {
  const [loaded, setLoaded] = useState<Loaded>(() =>
    isNew ? { state: "ready", chat: createChat(id, [], onEnd), aliases: [] } : { state: "loading" },
  );
  useEffect(() => {
    if (isNew) return;
    const gone = new AbortController();
    server.conversation(id, gone.signal).then(
      ({ messages, aliases }) => {
        // The resumed stream replays the running turn from its start.
        const ended = (messages as unknown as ChatMessage[]).filter(({ metadata }) => metadata?.status !== "running");
        setLoaded({ state: "ready", chat: createChat(id, ended, onEnd), aliases });
      },
      (error: unknown) => {
        if (gone.signal.aborted) return;
        const isUnknown = error instanceof ApiError && error.status === 404;
        setLoaded(isUnknown ? { state: "ready", chat: createChat(id, [], onEnd), aliases: [] } : { state: "failed", error });
      },
    );
    return () => gone.abort();
  }, [id, isNew, onEnd]);
  const refreshAliases = useCallback(() => {
    server.aliases(id).then(
      ({ aliases }) => setLoaded((before) => (before.state === "ready" ? { ...before, aliases } : before)),
      () => undefined,
    );
  }, [id]);
  return { loaded, refreshAliases };
}
