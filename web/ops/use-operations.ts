import { useEffect, useState } from "react";
import type { Operations } from "../../src/protocol/http-operations.ts";
import { server } from "../page/api/server.ts";

export interface OperationsState {
  /** Newest last: one point every two seconds, for ten minutes. */
  readonly history: readonly Operations[];
  readonly error: unknown;
}

const everyMs = 2000;
const most = 300;

export function useOperations(): OperationsState {
  const [state, setState] = useState<OperationsState>({ history: [], error: null });
  useEffect(() => {
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async (): Promise<void> => {
      try {
        const news = await server.operations(gone.signal);
        setState(({ history }) => ({ history: [...history, news].slice(-most), error: null }));
      } catch (error) {
        if (gone.signal.aborted) return;
        setState(({ history }) => ({ history, error }));
      }
      timer = setTimeout(() => void look(), everyMs);
    };
    void look();
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, []);
  return state;
}
