import { format } from "node:util";
import { withoutSecrets } from "../../tools/find-credentials.ts";
import { ellipsize } from "../../text/clip-text.ts";
import { escapeControls } from "../../text/json.ts";

export const logLevels = ["error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof logLevels)[number];

/** What is worth knowing of an event. Values are numbers, truth values and short texts; never headers, bodies or queries. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Log {
  error(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  debug(event: string, fields?: LogFields): void;
}

export interface LogOptions {
  readonly level: LogLevel;
  /** One JSON object a line, or a line that a person reads. */
  readonly format: "json" | "text";
  readonly write: (line: string) => void;
  readonly now?: () => Date;
}

const MAX_CHARACTERS = 2000;

/** Lines of what the server does. What looks like a credential is taken out of every value. */
export function createLog({ level, format, write, now = () => new Date() }: LogOptions): Log {
  const allowed = logLevels.indexOf(level);
  const at =
    (one: LogLevel) =>
    (event: string, fields: LogFields = {}): void => {
      if (logLevels.indexOf(one) > allowed) return;
      const known = Object.entries(fields).filter(([, value]) => value !== undefined);
      const clean = Object.fromEntries(known.map(([name, value]) => [name, typeof value === "string" ? toClean(value) : value]));
      const time = now().toISOString();
      write(
        format === "json"
          ? `${JSON.stringify({ time, level: one, event, ...clean })}\n`
          : toText({ time, level: one, event, fields: clean }),
      );
    };
  return { error: at("error"), warn: at("warn"), info: at("info"), debug: at("debug") };
}

function toClean(text: string): string {
  const clean = withoutSecrets(text.toWellFormed()); // before the cut: half a secret is not known for one
  return ellipsize(clean, MAX_CHARACTERS);
}

function toText({ time, level, event, fields }: { time: string; level: LogLevel; event: string; fields: object }): string {
  const parts = Object.entries(fields).map(([name, value]) => `${name}=${toOneLine(value)}`);
  return `${time.slice(11, 19)} ${level.padEnd(5)} ${event}${parts.length === 0 ? "" : ` ${parts.join(" ")}`}\n`;
}

/** A value cannot begin a new line, nor command a terminal. */
function toOneLine(value: unknown): string {
  return typeof value === "string" && /^[\w./:-]+$/.test(value) ? value : escapeControls(JSON.stringify(value) ?? "null");
}

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
