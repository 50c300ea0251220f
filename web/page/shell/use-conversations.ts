import { useCallback, useEffect, useState } from "react";
import type { ConversationSummary } from "../../../src/protocol/http-conversations.ts";
import { server } from "../api/server.ts";

interface Conversations {
  readonly list: readonly ConversationSummary[];
  readonly next: string | null;
  readonly query: string;
  search(query: string): void;
  refresh(): void;
  more(): void;
  remove(id: string): Promise<void>;
}

/** Loads the conversations that match the search, newest first. */
export function useConversations(): Conversations {
  const [query, setQuery] = useState("");
  const [{ list, next }, setPage] = useState<{ list: readonly ConversationSummary[]; next: string | null }>({ list: [], next: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const gone = new AbortController();
    const load = (): void => {
      server.conversations({ q: query.trim(), signal: gone.signal }).then(
        (page) => setPage({ list: page.conversations, next: page.next }),
        () => undefined,
      );
    };
    const timer = setTimeout(load, query === "" ? 0 : 200);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [query, round]);
  const refresh = useCallback(() => setRound((count) => count + 1), []);
  const more = (): void => {
    if (next === null) return;
    server.conversations({ q: query.trim(), before: next }).then(
      (page) => setPage({ list: [...list, ...page.conversations], next: page.next }),
      () => undefined,
    );
  };
  const remove = async (id: string): Promise<void> => {
    await server.remove(id);
    refresh();
  };
  return { list, next, query, search: setQuery, refresh, more, remove };
}
