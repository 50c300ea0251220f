import { format } from "node:util";
import { withoutSecrets } from "../../tools/find-credentials.ts";
import { ellipsize } from "../../text/clip-text.ts";
import { escapeControls } from "../../text/json.ts";

export const logLevels = ["error", "warn", "info", "debug"] as const;
type LogLevel = (typeof logLevels)[number];

/** Facts about an event: numbers, booleans and short texts. Never log headers, bodies or queries. */
type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Log {
  error(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  debug(event: string, fields?: LogFields): void;
}

export interface LogOptions {
  readonly level: LogLevel;
  /** `json`: one object per line. `text`: lines for people. */
  readonly format: "json" | "text";
  readonly write: (line: string) => void;
  readonly now?: () => Date;
}

const MAX_VALUE_CHARACTERS = 2000;

/** Writes one line per event. Text that looks like a credential is removed from every value. */
export function createLog({ level, format, write, now = () => new Date() }: LogOptions): Log {
  const loggerFor =
    (eventLevel: LogLevel) =>
    (event: string, fields: LogFields = {}): void => {
      if (logLevels.indexOf(eventLevel) > logLevels.indexOf(level)) return;
      const defined = Object.entries(fields).filter(([, value]) => value !== undefined);
      const clean = Object.fromEntries(defined.map(([name, value]) => [name, typeof value === "string" ? cleanText(value) : value]));
      const line = { time: now().toISOString(), level: eventLevel, event };
      write(format === "json" ? `${JSON.stringify({ ...line, ...clean })}\n` : toTextLine({ ...line, fields: clean }));
    };
  return { error: loggerFor("error"), warn: loggerFor("warn"), info: loggerFor("info"), debug: loggerFor("debug") };
}

function cleanText(text: string): string {
  const clean = withoutSecrets(text.toWellFormed()); // before it is shortened: half a secret is not recognized
  return ellipsize(clean, MAX_VALUE_CHARACTERS);
}

function toTextLine({ time, level, event, fields }: { time: string; level: LogLevel; event: string; fields: object }): string {
  const parts = Object.entries(fields).map(([name, value]) => `${name}=${toOneLine(value)}`);
  return `${time.slice(11, 19)} ${level.padEnd(5)} ${event}${parts.length === 0 ? "" : ` ${parts.join(" ")}`}\n`;
}

/** Escapes line breaks and terminal control characters. */
function toOneLine(value: unknown): string {
  return typeof value === "string" && /^[\w./:-]+$/.test(value) ? value : escapeControls(JSON.stringify(value) ?? "null");
}

/** Libraries use `info` and `log` for noise such as "the client disconnected". */
const consoleLevels: Readonly<Record<"error" | "warn" | "info" | "log" | "debug", LogLevel>> = {
  error: "error",
  warn: "warn",
  info: "debug",
  log: "debug",
  debug: "debug",
};

/** Redirects the console to the log, for a process whose output is parsed. */
export function redirectConsole(target: Pick<Console, keyof typeof consoleLevels>, log: Log): void {
  for (const [name, level] of Object.entries(consoleLevels) as [keyof typeof consoleLevels, LogLevel][])
    target[name] = (...values: unknown[]) => log[level]("printed", { text: format(...values) });
}
