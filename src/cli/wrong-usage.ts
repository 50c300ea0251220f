import { UsageError } from "../errors/sluice-error.ts";

/** What was typed after `sluice COMMAND` cannot be. */
export function wrongUsage(command: string, message: string): UsageError {
  return new UsageError({ code: "WRONG_USAGE", message, hint: `sluice ${command} --help shows how it is called.` });
}
