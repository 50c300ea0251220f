import { setImmediate as yieldToEventLoop } from "node:timers/promises";

const MAX_BLOCK_MS = 10;

/**
 * Creates a function to await in every iteration of a loop over data that may all be there already, such as a stream: when the loop has run for 10 ms, it
 * yields to the event loop. Without that, reading such data blocks all other work.
 */
export function createBreather(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < MAX_BLOCK_MS) return;
    await yieldToEventLoop();
    since = performance.now();
  };
}
