import { cleanHost } from "./clean-host.ts";
import { fromProcessKey, isProcessAlive } from "../processes.ts";

/**
 * A program that run-directory.ts starts: `reaper-process DIRECTORY HOST`. If its stdin ends without a message, the host has died, and it cleans up.
 * Signals that also end the host must not end it.
 */
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP"] as const) process.on(signal, () => {});

const [directory, key] = process.argv.slice(2) as [string, string];
const host = fromProcessKey(key);
let received = "";
for await (const chunk of process.stdin) received += String(chunk);

if (received === "" && host !== null) {
  // The kernel closes the descriptors of a dying process shortly before the process disappears.
  for (const deadline = performance.now() + 2_000; isProcessAlive(host) === true && performance.now() < deadline;) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  if (isProcessAlive(host) === false) await cleanHost({ directory, host });
}
process.exit(0);
