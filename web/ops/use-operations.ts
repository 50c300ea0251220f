import { useEffect, useState } from "react";
import type { Operations } from "../../src/protocol/http-operations.ts";
import { server } from "../page/api/server.ts";

export interface OperationsState {
  /** Newest last: one point every two seconds, for ten minutes. */
  readonly history: readonly Operations[];
  readonly error: unknown;
}

const pollMs = 2000;
const maxPoints = 300;

export function useOperations(): OperationsState {
  const [state, setState] = useState<OperationsState>({ history: [], error: null });
  useEffect(() => {
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = async (): Promise<void> => {
      try {
        const latest = await server.operations(gone.signal);
        setState(({ history }) => ({ history: [...history, latest].slice(-maxPoints), error: null }));
      } catch (error) {
        if (gone.signal.aborted) return;
        setState(({ history }) => ({ history, error }));
      }
      timer = setTimeout(() => void poll(), pollMs);
    };
    void poll();
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, []);
  return state;
}
