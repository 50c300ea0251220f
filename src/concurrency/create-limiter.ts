import { currentTenant } from "./tenant.ts";

export interface LimiterOptions {
  readonly places: number;
  /** How many places one key may hold at once. */
  readonly placesPerKey?: number;
  /** How many callers of one key may wait at once. */
  readonly maxWaitingPerKey?: number;
  /** Time limit for the wait. Default: none. */
  readonly deadlineMs?: number;
  /** Creates the error for a caller that waited too long or found the queue full. */
  readonly toError?: (why: "timeout" | "queue-full") => Error;
}

export function createLimiter(options: LimiterOptions): Limiter {
  return new Limiter(options);
}

interface Waiter {
  readonly key: string;
  readonly admit: (leave: () => void) => void;
}

/**
 * Bounds how much runs at once. Waiting keys take turns: a free place goes to the key whose last turn was longest ago, and within a key to the first that
 * came. So what one key has queued does not delay another. A key at its own limit does not block other keys. The default key is the current tenant.
 */
export class Limiter {
  readonly #options: LimiterOptions;
  readonly #takenByKey = new Map<string, number>();
  /** When each key last took a place, counted in turns. */
  readonly #lastTurns = new Map<string, number>();
  /** In order of arrival. */
  readonly #queue: Waiter[] = [];
  readonly #holders = new Set<() => boolean>();
  #taken = 0;
  #turns = 0;
  #idle = Promise.withResolvers<void>();

  constructor(options: LimiterOptions) {
    this.#options = options;
  }

  get places(): number {
    return this.#options.places;
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** Waits for a place. Returns a function that gives the place back and may be called more than once. Rejects with `signal.reason` on abort. */
  async enter(signal?: AbortSignal, key = currentTenant()): Promise<() => void> {
    signal?.throwIfAborted();
    const leave = this.tryEnter(key);
    if (leave !== null) return leave;
    const { maxWaitingPerKey = Infinity } = this.#options;
    if (this.#queue.filter((waiter) => waiter.key === key).length >= maxWaitingPerKey) throw this.#toError("queue-full");
    return await this.#wait(key, signal);
  }

  /** Takes a place if one is free; otherwise returns null. */
  tryEnter(key = currentTenant(), placesPerKey?: number): (() => void) | null {
    return this.#isFree(key, placesPerKey) ? this.#take(key) : null;
  }

  /** Runs `work` while holding a place. Work whose signal aborts before it gets a place never starts. */
  async run<Value>(work: () => Promise<Value>, signal?: AbortSignal, key?: string): Promise<Value> {
    signal?.throwIfAborted();
    const leave = this.tryEnter(key) ?? (await this.enter(signal, key)); // starts at once if a place is free
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** Resolves when no place is taken and nothing waits. */
  async idle(): Promise<void> {
    if (this.#taken > 0) await this.#idle.promise;
  }

  /**
   * Registers a holder that can free a place on request. When a caller starts to wait, holders are called in turn until one returns true.
   * Returns a function that unregisters the holder.
   */
  onWaiting(giveUp: () => boolean): () => void {
    this.#holders.add(giveUp);
    return () => void this.#holders.delete(giveUp);
  }

  async #wait(key: string, signal?: AbortSignal): Promise<() => void> {
    const { deadlineMs } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const waiter: Waiter = { key, admit: resolve };
    const stopWaiting = (error: unknown): void => {
      const index = this.#queue.indexOf(waiter);
      if (index === -1) return; // admitted in the meantime
      this.#queue.splice(index, 1);
      reject(error);
    };
    const onAbort = (): void => stopWaiting(signal?.reason);
    this.#queue.push(waiter);
    signal?.addEventListener("abort", onAbort, { once: true });
    const timer = deadlineMs === undefined ? undefined : setTimeout(() => stopWaiting(this.#toError("timeout")), deadlineMs);
    for (const giveUp of this.#holders) if (giveUp()) break;
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #isFree(key: string, placesPerKey = this.#options.placesPerKey ?? Infinity): boolean {
    return this.#taken < this.places && (this.#takenByKey.get(key) ?? 0) < placesPerKey;
  }

  #take(key: string): () => void {
    this.#taken += 1;
    this.#turns += 1;
    this.#lastTurns.set(key, this.#turns);
    this.#takenByKey.set(key, (this.#takenByKey.get(key) ?? 0) + 1);
    let hasLeft = false;
    return () => {
      if (hasLeft) return;
      hasLeft = true;
      this.#leave(key);
    };
  }

  #leave(key: string): void {
    this.#taken -= 1;
    const remaining = this.#takenByKey.get(key)! - 1;
    if (remaining > 0) this.#takenByKey.set(key, remaining);
    else this.#takenByKey.delete(key);
    const next = this.#findNext();
    if (next !== undefined) {
      this.#queue.splice(this.#queue.indexOf(next), 1);
      next.admit(this.#take(next.key));
    }
    if (this.#taken > 0) return;
    this.#lastTurns.clear();
    this.#idle.resolve();
    this.#idle = Promise.withResolvers();
  }

  #findNext(): Waiter | undefined {
    const lastTurn = ({ key }: Waiter): number => this.#lastTurns.get(key) ?? 0;
    const free = this.#queue.filter((waiter) => this.#isFree(waiter.key));
    return free.reduce<Waiter | undefined>((next, waiter) => (next && lastTurn(next) <= lastTurn(waiter) ? next : waiter), undefined);
  }

  #toError(why: "timeout" | "queue-full"): Error {
    return this.#options.toError?.(why) ?? new Error(why);
  }
}
