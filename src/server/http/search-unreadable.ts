import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { ServerParts } from "./open-parts.ts";

/** Looks once through everything that is stored, a turn at a time, for rows that cannot be read, so that `/readyz` and `sluice doctor` know them. */
export function searchUnreadable({ history, log }: Pick<ServerParts, "history" | "log">): Disposable {
  let isStopped = false;
  const search = async (): Promise<void> => {
    try {
      for (const _ of history.quarantine.isolateAll()) {
        await yieldToEventLoop();
        if (isStopped) return;
      }
      const rows = history.quarantine.count();
      if (rows > 0) log.warn("rows_quarantined", { rows });
    } catch (error) {
      log.error("search_failed", { reason: (error as Error).message });
    }
  };
  void search();
  return { [Symbol.dispose]: () => void (isStopped = true) };
}
