import { cleanHost } from "./clean-host.ts";
import { fromProcessKey, isProcessAlive } from "../processes.ts";

/** Run as a program by run-directory.ts: `reaper-process DIRECTORY HOST`. Waits for the end of its standard input, then cleans what the host left. */
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP"] as const) process.on(signal, () => {});

const [directory, key] = process.argv.slice(2) as [string, string];
const host = fromProcessKey(key);
let received = "";
for await (const chunk of process.stdin) received += String(chunk);

if (received === "" && host !== null) {
  // The kernel closes a dying process's descriptors shortly before it is gone.
  for (const deadline = performance.now() + 2_000; isProcessAlive(host) === true && performance.now() < deadline;) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  if (isProcessAlive(host) === false) await cleanHost({ directory, host });
}
process.exit(0);
