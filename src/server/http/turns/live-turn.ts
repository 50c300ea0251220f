import type { StoredEvent } from "../../../history/history.ts";
import type { TurnEvent } from "../../../protocol/turn-events.ts";
import type { RecordedResult } from "../../../protocol/turn-result.ts";
import { createApprovals } from "../../../turn/create-approvals.ts";

export interface LiveTurnOptions {
  readonly tenant: string;
  readonly turnId: string;
  readonly conversationId: string;
  /** The turn is stopped after this long without a listener. Null for a turn that needs none. */
  readonly unattendedMs: number | null;
  /** Stores an event. Called before any listener gets it. */
  readonly store: (event: StoredEvent) => void;
}

/** A running turn: its events so far, its listeners, and a way to stop it. */
export class LiveTurn {
  readonly tenant: string;
  readonly turnId: string;
  readonly conversationId: string;
  readonly approvals: ReturnType<typeof createApprovals> = createApprovals();
  readonly #options: LiveTurnOptions;
  readonly #events: StoredEvent[] = [];
  readonly #stopping = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  #nextEvent = Promise.withResolvers<void>();
  #isOver = false;
  #listeners = 0;
  #unattendedTimer: NodeJS.Timeout | undefined;

  constructor(options: LiveTurnOptions) {
    this.tenant = options.tenant;
    this.turnId = options.turnId;
    this.conversationId = options.conversationId;
    this.#options = options;
    this.#watchAttendance();
  }

  /** Aborted when the turn is to stop. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  get events(): readonly StoredEvent[] {
    return this.#events;
  }

  /** The result once the turn has emitted its last event, else null. */
  get result(): RecordedResult | null {
    const last = this.#events.at(-1)?.event;
    return last?.type === "turn-end" ? last.result : null;
  }

  /** Resolves when the turn has ended and everything has been stored. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Yields the events after number `after`, past and future, until the turn has ended. The caller counts as a listener meanwhile. */
  async *follow(after: number, signal: AbortSignal): AsyncIterableIterator<StoredEvent> {
    const wake = (): void => this.#wakeListeners();
    this.#listeners += 1;
    this.#watchAttendance();
    signal.addEventListener("abort", wake);
    try {
      for (let seq = after; !signal.aborted;) {
        const next = this.#events[seq];
        if (next !== undefined) {
          seq += 1;
          yield next;
        } else if (this.#isOver) return;
        else await this.#nextEvent.promise;
      }
    } finally {
      signal.removeEventListener("abort", wake);
      this.#listeners -= 1;
      this.#watchAttendance();
    }
  }

  stop(reason: string): void {
    if (!this.#isOver) this.#stopping.abort(new Error(reason));
  }

  /** Stores an event and passes it to the listeners. For the code that runs the turn. */
  push(event: TurnEvent): void {
    const stored = { seq: this.#events.length + 1, at: new Date().toISOString(), event };
    this.#options.store(stored);
    this.#events.push(stored);
    this.#wakeListeners();
  }

  /** Ends all streams. For the code that runs the turn. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#unattendedTimer);
    this.#ended.resolve();
    this.#wakeListeners();
  }

  #wakeListeners(): void {
    this.#nextEvent.resolve();
    this.#nextEvent = Promise.withResolvers();
  }

  /** Stops the turn after a while without listeners, so that a client that disappeared does not hold a sandbox. */
  #watchAttendance(): void {
    const { unattendedMs } = this.#options;
    clearTimeout(this.#unattendedTimer);
    if (unattendedMs === null || this.#listeners > 0 || this.#isOver) return;
    this.#unattendedTimer = setTimeout(() => this.stop("no client was listening to the turn"), unattendedMs);
  }
}

export interface EventStreamOptions<Chunk> {
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
  /** Opens the events of a running or a stored turn. */
  readonly open: (signal: AbortSignal) => ReturnType<LiveTurn["follow"]> | ArrayIterator<StoredEvent>;
  /** Sent before the first event. */
  readonly head: readonly Chunk[];
  readonly toChunks: (event: StoredEvent) => readonly Chunk[];
  /** Sent at intervals so that proxies keep the connection open. */
  readonly keepAlive?: { readonly everyMs: number; readonly chunk: Chunk };
}

/** Events as a response body. Reads one event at a time, as fast as the client does; a client that disconnects stops listening to the turn. */
export function createEventStream<Chunk>({ signal, open, head, toChunks, keepAlive }: EventStreamOptions<Chunk>): ReadableStream<Chunk> {
  const cancelled = new AbortController();
  const events = open(AbortSignal.any([signal, cancelled.signal]));
  let hasBegun = false;
  let keepAliveTimer: NodeJS.Timeout | undefined;
  return new ReadableStream<Chunk>(
    {
      async pull(controller) {
        if (!hasBegun) {
          // The timer starts with the first read: the body of a HEAD response is dropped without `cancel`.
          hasBegun = true;
          if (keepAlive !== undefined) keepAliveTimer = setInterval(() => controller.enqueue(keepAlive.chunk), keepAlive.everyMs).unref();
          for (const chunk of head) controller.enqueue(chunk);
          return;
        }
        const { done, value } = await events.next();
        if (done !== true) {
          for (const chunk of toChunks(value)) controller.enqueue(chunk);
          return;
        }
        clearInterval(keepAliveTimer);
        controller.close();
      },
      async cancel() {
        clearInterval(keepAliveTimer);
        cancelled.abort();
        await events.return?.(); // the abort alone does not end an iterator that is suspended at a yield
      },
    },
    { highWaterMark: 0 },
  );
}
