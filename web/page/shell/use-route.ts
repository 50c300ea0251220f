import { useCallback, useEffect, useState } from "react";

export interface Route {
  readonly page: "conversation" | "operations";
  /** Null for a new conversation. */
  readonly conversationId: string | null;
}

/** The address bar: `/`, `/c/<id>`, `/ops`. */
export function useRoute(): { route: Route; go(path: string): void } {
  const [path, setPath] = useState(location.pathname);
  useEffect(() => {
    const changed = (): void => setPath(location.pathname);
    addEventListener("popstate", changed);
    return () => removeEventListener("popstate", changed);
  }, []);
  const go = useCallback((next: string) => {
    if (next !== location.pathname) history.pushState(null, "", next);
    setPath(next);
  }, []);
  return { route: toRoute(path), go };
}

function toRoute(path: string): Route {
  if (path === "/ops") return { page: "operations", conversationId: null };
  const [, id = null] = /^\/c\/([\w-]{1,128})$/.exec(path) ?? [];
  return { page: "conversation", conversationId: id };
}
