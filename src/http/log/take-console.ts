import { format } from "node:util";
import type { Log, LogLevel } from "./create-log.ts";

/** What libraries print: that a client went away is told by one of them on standard output. */
const levels: Readonly<Record<"error" | "warn" | "info" | "log" | "debug", LogLevel>> = {
  error: "error",
  warn: "warn",
  info: "debug",
  log: "debug",
  debug: "debug",
};

/** From now on what anybody prints is a line of the log, for a process whose output others read. */
export function takeConsole(target: Pick<Console, keyof typeof levels>, log: Log): void {
  for (const [name, level] of Object.entries(levels) as [keyof typeof levels, LogLevel][])
    target[name] = (...values: unknown[]) => log[level]("printed", { text: format(...values) });
}
