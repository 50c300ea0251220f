/** Waits for `promise`, but rejects with `signal.reason` as soon as the signal aborts. An abort does not cancel the work behind the promise. */
export async function orAbort<Value>(promise: Promise<Value>, signal?: AbortSignal): Promise<Value> {
  if (signal === undefined) return await promise;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  promise.catch(() => {}); // after an abort, a late failure must not become an unhandled rejection
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
