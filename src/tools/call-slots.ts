/** How many calls may be under way at once. Who comes first is served first. */
export interface CallSlots {
  readonly max: number;
  /** Runs `work` when there is a free slot. Rejects with `signal.reason` when it is aborted before; then `work` is not run. */
  run<Value>(work: () => Promise<Value>, signal?: AbortSignal): Promise<Value>;
}

export function createCallSlots(max: number): CallSlots {
  const waiting = new Set<() => void>();
  let free = max;

  async function wait(signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = (): void => {
      waiting.delete(resolve);
      reject(signal?.reason);
    };
    waiting.add(resolve);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** A slot goes to the next in line without being free in between. */
  function release(): void {
    const [next] = waiting;
    if (next === undefined) {
      free += 1;
      return;
    }
    waiting.delete(next);
    next();
  }

  return {
    max,
    async run(work, signal) {
      signal?.throwIfAborted();
      if (free > 0) free -= 1;
      else await wait(signal);
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}
