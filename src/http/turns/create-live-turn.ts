import type { StoredEvent } from "../../history/contract.ts";
import type { TurnEvent } from "../../protocol/turn-events.ts";
import type { TurnResult } from "../../protocol/turn-result.ts";
import { createApprovals, type Approvals } from "../../turn/create-approvals.ts";

/** A turn while it runs: what happened so far, who listens, and how it is ended. */
export interface LiveTurn {
  readonly tenant: string;
  readonly turnId: string;
  readonly conversationId: string;
  readonly approvals: Approvals;
  readonly signal: AbortSignal;
  /** What happened so far. */
  readonly events: readonly StoredEvent[];
  /** What it gave, once it is over. */
  readonly result: TurnResult | null;
  /** Resolves when it has ended and everything of it is kept. */
  readonly over: Promise<void>;
  /** What happened after a number, and then what happens, until the turn has ended. Whoever goes through it counts as a listener meanwhile. */
  follow(after: number, signal: AbortSignal): AsyncIterableIterator<StoredEvent>;
  stop(why: string): void;
}

export interface TurnFeed extends LiveTurn {
  push(event: TurnEvent): void;
  end(): void;
}

export interface LiveTurnOptions {
  readonly tenant: string;
  readonly turnId: string;
  readonly conversationId: string;
  /** Somebody must listen: without a listener for so long, the turn is ended. Null for a turn that is asked for and looked at later. */
  readonly unattendedMs: number | null;
  /** Keeps an event; called before any listener hears of it. */
  readonly keep: (stored: StoredEvent) => void;
}

export function createLiveTurn({ tenant, turnId, conversationId, unattendedMs, keep }: LiveTurnOptions): TurnFeed {
  const events: StoredEvent[] = [];
  const stopping = new AbortController();
  const over = Promise.withResolvers<void>();
  let wake = Promise.withResolvers<void>();
  let isOver = false;
  let listeners = 0;
  let unattended: NodeJS.Timeout | undefined;

  function signalAll(): void {
    wake.resolve();
    wake = Promise.withResolvers();
  }

  /** A client that vanished cannot hold a sandbox. */
  function watchAttendance(): void {
    clearTimeout(unattended);
    if (unattendedMs === null || listeners > 0 || isOver) return;
    unattended = setTimeout(() => stop("nobody listened to the turn any more"), unattendedMs);
  }

  function stop(why: string): void {
    if (!isOver) stopping.abort(new Error(why));
  }

  async function* follow(after: number, signal: AbortSignal): AsyncIterableIterator<StoredEvent> {
    listeners += 1;
    watchAttendance();
    signal.addEventListener("abort", signalAll);
    try {
      for (let seq = after; !signal.aborted;) {
        const next = events[seq];
        if (next !== undefined) {
          seq += 1;
          yield next;
        } else if (isOver) return;
        else await wake.promise;
      }
    } finally {
      signal.removeEventListener("abort", signalAll);
      listeners -= 1;
      watchAttendance();
    }
  }

  watchAttendance();
  return {
    tenant,
    turnId,
    conversationId,
    approvals: createApprovals(),
    signal: stopping.signal,
    over: over.promise,
    events,
    get result() {
      const last = events.at(-1)?.event;
      return last?.type === "turn-end" ? last.result : null;
    },
    follow,
    stop,
    push(event) {
      const stored = { seq: events.length + 1, at: new Date().toISOString(), event };
      keep(stored);
      events.push(stored);
      signalAll();
    },
    end() {
      isOver = true;
      clearTimeout(unattended);
      over.resolve();
      signalAll();
    },
  };
}
