import { lazy, Suspense, useCallback, useEffect, useState } from "react";
import type { ServerInfo } from "../../../src/protocol/http-operations.ts";
import { texts } from "../../texts.ts";
import { ApiError } from "../api/api-error.ts";
import { server } from "../api/server.ts";
import { FailureNotice } from "../conversation/failure-notice.tsx";
import { ChatPage } from "./chat-page.tsx";
import { useRoute } from "./use-route.ts";

const OpsPage = lazy(() => import("../../ops/ops-page.tsx"));

type State = { readonly info: ServerInfo } | { readonly error: unknown } | null;

/** Shows the page that the route names, once the server has described itself. */
export function App() {
  const { route, go } = useRoute();
  const [state, setState] = useState<State>(null);
  const load = useCallback(() => {
    server.info().then(
      (info) => setState({ info }),
      (error: unknown) => setState({ error }),
    );
  }, []);
  useEffect(load, [load]);
  if (state === null) return <main className="blank" aria-busy />;
  if ("error" in state) {
    const isLoggedOut = state.error instanceof ApiError && state.error.status === 401;
    return (
      <main className="blank">
        <h1>{texts.shell.name}</h1>
        {isLoggedOut ? (
          <p className="notice notice-major">
            <strong>{texts.shell.loggedOut}.</strong> {texts.shell.loggedOutHint}
          </p>
        ) : (
          <FailureNotice error={state.error} onAgain={load} />
        )}
      </main>
    );
  }
  if (route.page === "operations") {
    return (
      <Suspense fallback={<main className="blank" aria-busy />}>
        <OpsPage go={go} />
      </Suspense>
    );
  }
  return <ChatPage info={state.info} conversationId={route.conversationId} go={go} />;
}
