/** The tools that run now. A model call can end before they do: by abort, or by a provider that is gone. */
export interface RunningTools {
  track<Value>(work: Promise<Value>): Promise<Value>;
  /** Resolves when all are over, or when they have been waited for long enough. */
  settle(withinMs: number): Promise<void>;
}

export function createRunningTools(): RunningTools {
  const running = new Set<Promise<unknown>>();

  return {
    track(work) {
      const over: Promise<unknown> = work.then(
        () => running.delete(over),
        () => running.delete(over),
      );
      running.add(over);
      return work;
    },
    async settle(withinMs) {
      if (running.size === 0) return;
      const { promise: tooLong, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, withinMs);
      await Promise.race([Promise.allSettled(running), tooLong]);
      clearTimeout(timer);
    },
  };
}
