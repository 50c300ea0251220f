/** The end of one call: its caller gives up, or its time is over. */
export interface Deadline extends Disposable {
  /** Aborted at that end. Made when it is asked for: a thousand calls of a script to functions that do not look at it need none. */
  signal(): AbortSignal;
  isOver(): boolean;
  /** Its time begins anew. */
  restart(): void;
  /** Rejects at that end with its reason; what was waited for goes on by itself. */
  race<Value>(promise: Promise<Value>): Promise<Value>;
}

/** Not with `AbortSignal.any`: a script makes a thousand calls with one signal, and each would leave a weak reference behind. */
export function startDeadline(timeoutMs: number, caller: AbortSignal | undefined): Deadline {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  ended.catch(() => {}); // nobody may be waiting any more
  let abort: AbortController | null = null;
  let end: { readonly reason: unknown } | null = null;
  let isOver = false;
  const timer = setTimeout(() => {
    isOver = end === null;
    finish(new DOMException("The tool did not answer in time.", "TimeoutError"));
  }, timeoutMs);
  if (caller?.aborted) giveUp();
  caller?.addEventListener("abort", giveUp, { once: true });

  function giveUp(): void {
    finish(caller?.reason);
  }

  function finish(reason: unknown): void {
    if (end !== null) return;
    end = { reason };
    abort?.abort(reason);
    reject(reason);
  }

  return {
    signal() {
      if (abort === null) {
        abort = new AbortController();
        if (end !== null) abort.abort(end.reason);
      }
      return abort.signal;
    },
    isOver: () => isOver,
    restart: () => void timer.refresh(),
    race(promise) {
      promise.catch(() => {}); // nobody may be left to hear of it
      return Promise.race([promise, ended]);
    },
    [Symbol.dispose]() {
      clearTimeout(timer);
      caller?.removeEventListener("abort", giveUp);
    },
  };
}
