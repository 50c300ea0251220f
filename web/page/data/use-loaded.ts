import { useCallback, useEffect, useState, type DependencyList } from "react";

export type Loaded<Value> =
  | { readonly state: "loading" }
  | { readonly state: "failed"; readonly error: unknown }
  | { readonly state: "ready"; readonly value: Value; readonly isStale: boolean };

/** Loads something from the server again whenever its dependencies change. The old value stays visible until the new one arrives. */
export function useLoaded<Value>(load: (signal: AbortSignal) => Promise<Value>, dependencies: DependencyList): [Loaded<Value>, () => void] {
  const [loaded, setLoaded] = useState<Loaded<Value>>({ state: "loading" });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const gone = new AbortController();
    setLoaded((before) => (before.state === "ready" ? { ...before, isStale: true } : { state: "loading" }));
    load(gone.signal).then(
      (value) => setLoaded({ state: "ready", value, isStale: false }),
      (error: unknown) => {
        if (!gone.signal.aborted) setLoaded({ state: "failed", error });
      },
    );
    return () => gone.abort();
    // The caller passes the dependencies.
  }, [...dependencies, round]);
  return [loaded, useCallback(() => setRound((count) => count + 1), [])];
}
