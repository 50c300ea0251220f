import { useEffect, useState } from "react";

/** Milliseconds since a moment, updated four times a second while active. */
export function useElapsed(since: string | null, isRunning: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, [isRunning]);
  return since === null ? 0 : Math.max(0, now - Date.parse(since));
}
