export interface LineRules {
  readonly deadlineMs: number;
  /** What it is told who has waited that long. */
  readonly late: () => Error;
  readonly signal?: AbortSignal | undefined;
}

/** Waits at the end of a line until whoever keeps the line takes the entry out of it and admits it. Leaves the line at the deadline and on abort. */
export async function waitInLine<Entry, Value>(
  line: Entry[],
  toEntry: (admit: (value: Value) => void) => Entry,
  { deadlineMs, late, signal }: LineRules,
): Promise<Value> {
  const { promise, resolve, reject } = Promise.withResolvers<Value>();
  const entry = toEntry(resolve);
  const leave = (error: unknown): void => {
    const at = line.indexOf(entry);
    if (at === -1) return; // admitted just now
    line.splice(at, 1);
    reject(error);
  };
  line.push(entry);
  const timer = setTimeout(() => leave(late()), deadlineMs);
  const abort = (): void => leave(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}
