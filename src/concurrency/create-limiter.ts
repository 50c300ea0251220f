export interface LimiterOptions {
  readonly places: number;
  /** Places that one key may take at once. */
  readonly placesPerKey?: number;
  /** Callers of one key that may wait at once. */
  readonly maxWaitingPerKey?: number;
  /** Time limit for the wait; none by default. */
  readonly deadlineMs?: number;
  /** The error for a caller that waited too long or found the queue full. */
  readonly toError?: (why: "timeout" | "queue-full") => Error;
}

/** Bounds how much runs at once. Callers are served in the order in which they came; one whose key is at its limit does not hold up the others. */
export interface Limiter {
  readonly places: number;
  readonly taken: number;
  readonly waiting: number;
  /** Waits for a place. The returned function gives it back; calling it again does nothing. Rejects with `signal.reason` on abort. */
  enter(signal?: AbortSignal, key?: string): Promise<() => void>;
  /** A place if one is free, else null. */
  tryEnter(key?: string, placesPerKey?: number): (() => void) | null;
  /** Runs `work` in a place of its own: at once if one is free. Work whose signal is aborted while it waits is never started. */
  run<Value>(work: () => Promise<Value>, signal?: AbortSignal, key?: string): Promise<Value>;
  /** Resolves when nothing runs or waits. */
  idle(): Promise<void>;
  /**
   * Registers a holder of places that it can give up. When a caller begins to wait, holders are asked one after the other until one returns true.
   * The returned function unregisters it.
   */
  onWaiting(giveUp: () => boolean): () => void;
}

interface Waiter {
  readonly key: string;
  readonly admit: (leave: () => void) => void;
}

export function createLimiter(options: LimiterOptions): Limiter {
  const { places, placesPerKey = Infinity, maxWaitingPerKey = Infinity, deadlineMs, toError = (why) => new Error(why) } = options;
  const takenBy = new Map<string, number>();
  const queue: Waiter[] = [];
  const holders = new Set<() => boolean>();
  let taken = 0;
  let idle = Promise.withResolvers<void>();

  const isFree = (key: string, most = placesPerKey): boolean => taken < places && (takenBy.get(key) ?? 0) < most;

  function take(key: string): () => void {
    taken += 1;
    takenBy.set(key, (takenBy.get(key) ?? 0) + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      leave(key);
    };
  }

  function leave(key: string): void {
    taken -= 1;
    const rest = takenBy.get(key)! - 1;
    if (rest > 0) takenBy.set(key, rest);
    else takenBy.delete(key);
    const next = queue.find((waiter) => isFree(waiter.key));
    if (next !== undefined) {
      queue.splice(queue.indexOf(next), 1);
      next.admit(take(next.key));
    }
    if (taken > 0) return;
    idle.resolve();
    idle = Promise.withResolvers();
  }

  function tryEnter(key = "", most?: number): (() => void) | null {
    return isFree(key, most) ? take(key) : null;
  }

  async function enter(signal?: AbortSignal, key = ""): Promise<() => void> {
    signal?.throwIfAborted();
    const free = tryEnter(key);
    if (free !== null) return free;
    if (queue.filter((waiter) => waiter.key === key).length >= maxWaitingPerKey) throw toError("queue-full");
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const waiter = { key, admit: resolve };
    const giveUp = (error: unknown): void => {
      const at = queue.indexOf(waiter);
      if (at === -1) return; // admitted just now
      queue.splice(at, 1);
      reject(error);
    };
    const onAbort = (): void => giveUp(signal?.reason);
    queue.push(waiter);
    signal?.addEventListener("abort", onAbort, { once: true });
    const timer = deadlineMs === undefined ? undefined : setTimeout(() => giveUp(toError("timeout")), deadlineMs);
    for (const giveUpPlace of holders) if (giveUpPlace()) break;
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  return {
    places,
    get taken() {
      return taken;
    },
    get waiting() {
      return queue.length;
    },
    enter,
    tryEnter,
    async run(work, signal, key) {
      signal?.throwIfAborted();
      const leavePlace = tryEnter(key) ?? (await enter(signal, key));
      try {
        return await work();
      } finally {
        leavePlace();
      }
    },
    idle: async () => (taken === 0 ? undefined : await idle.promise),
    onWaiting(giveUp) {
      holders.add(giveUp);
      return () => void holders.delete(giveUp);
    },
  };
}
