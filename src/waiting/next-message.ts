import type { Worker } from "node:worker_threads";

/** What a thread says next, or why it said nothing. Keeps the process alive while it waits, and only then. */
export async function nextMessage<Message>(worker: Worker, timeoutMs: number): Promise<Message | "timeout" | "ended"> {
  const { promise, resolve } = Promise.withResolvers<Message | "timeout" | "ended">();
  const timer = setTimeout(() => resolve("timeout"), timeoutMs);
  const onEnd = (): void => resolve("ended");
  worker.ref();
  worker.once("message", resolve).once("exit", onEnd);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    worker.off("message", resolve).off("exit", onEnd);
    worker.unref();
  }
}
