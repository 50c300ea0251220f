/** One call at a time, in the order in which they came. */
export interface CallQueue {
  /** Runs the work when its turn has come. Who gives up while waiting is let go at once, and the work is never begun. */
  run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Resolves when everything that was asked for until now is over. */
  idle(): Promise<void>;
}

export function createCallQueue(): CallQueue {
  let last: Promise<void> = Promise.resolve();

  function run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { promise: givenUp, reject } = Promise.withResolvers<never>();
    const giveUp = (): void => reject(signal?.reason);
    if (signal?.aborted) giveUp();
    signal?.addEventListener("abort", giveUp, { once: true });
    const done = last.then(async () => {
      signal?.removeEventListener("abort", giveUp);
      signal?.throwIfAborted();
      return await work();
    });
    const over = (): void => {};
    last = done.then(over, over);
    return Promise.race([done, givenUp]);
  }

  return { run, idle: () => last };
}
