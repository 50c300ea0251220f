import type { StoredEvent } from "../../../history/history.ts";
import type { TurnEvent } from "../../../protocol/turn-events.ts";
import type { TurnResult } from "../../../protocol/turn-result.ts";
import { createApprovals } from "../../../turn/create-approvals.ts";

/** As those see it who listen, and end it. */
export type LiveTurn = Omit<TurnFeed, "push" | "end">;

export type TurnFeed = ReturnType<typeof createLiveTurn>;

export interface LiveTurnOptions {
  readonly tenant: string;
  readonly turnId: string;
  readonly conversationId: string;
  /** Somebody must listen: without a listener for so long, the turn is ended. Null for a turn that is asked for and looked at later. */
  readonly unattendedMs: number | null;
  /** Keeps an event; called before any listener hears of it. */
  readonly keep: (stored: StoredEvent) => void;
}

/** A turn while it runs: what happened so far, who listens, and how it is ended. */
export function createLiveTurn({ tenant, turnId, conversationId, unattendedMs, keep }: LiveTurnOptions) {
  const events: StoredEvent[] = [];
  const stopping = new AbortController();
  const signal: AbortSignal = stopping.signal;
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

  /** What happened after a number, and then what happens, until the turn has ended. Whoever goes through it counts as a listener meanwhile. */
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
    signal,
    /** Resolves when it has ended and everything of it is kept. */
    over: over.promise,
    events: events as readonly StoredEvent[],
    /** What it gave, once it is over. */
    get result(): TurnResult | null {
      const last = events.at(-1)?.event;
      return last?.type === "turn-end" ? last.result : null;
    },
    follow,
    stop,
    push(event: TurnEvent): void {
      const stored = { seq: events.length + 1, at: new Date().toISOString(), event };
      keep(stored);
      events.push(stored);
      signalAll();
    },
    end(): void {
      isOver = true;
      clearTimeout(unattended);
      over.resolve();
      signalAll();
    },
  };
}

export interface FollowOptions<Chunk> {
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** The events: those of a turn that runs, or those that were. */
  readonly open: (signal: AbortSignal) => ReturnType<LiveTurn["follow"]> | ArrayIterator<StoredEvent>;
  readonly begin: readonly Chunk[];
  readonly toChunks: (event: StoredEvent) => readonly Chunk[];
  /** Sent when nothing else is for so long. */
  readonly stillHere?: { readonly everyMs: number; readonly chunk: Chunk };
}

/** Events as they come, for the body of an answer. The next is taken when the client has taken the last; one that left is a listener no more. */
export function followStream<Chunk>({ signal, open, begin, toChunks, stillHere }: FollowOptions<Chunk>): ReadableStream<Chunk> {
  const gone = new AbortController();
  const events = open(AbortSignal.any([signal, gone.signal]));
  let hasBegun = false;
  let alive: NodeJS.Timeout | undefined;
  return new ReadableStream<Chunk>(
    {
      async pull(controller) {
        if (!hasBegun) {
          // Not before somebody reads: the body of a HEAD is dropped without a word.
          hasBegun = true;
          if (stillHere !== undefined) alive = setInterval(() => controller.enqueue(stillHere.chunk), stillHere.everyMs).unref();
          for (const chunk of begin) controller.enqueue(chunk);
          return;
        }
        const { done, value } = await events.next();
        if (done !== true) {
          for (const chunk of toChunks(value)) controller.enqueue(chunk);
          return;
        }
        clearInterval(alive);
        controller.close();
      },
      async cancel() {
        clearInterval(alive);
        gone.abort();
        await events.return?.(); // a listener that was between two events is none any more, either
      },
    },
    { highWaterMark: 0 },
  );
}
