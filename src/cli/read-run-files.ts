import { readFile } from "node:fs/promises";
import { addAbortSignal } from "node:stream";
import { formatOf } from "../data/data-formats.ts";
import { dataFileEndings } from "../protocol/data-files.ts";
import { UsageError } from "../errors/sluice-error.ts";
import type { SessionInput } from "../interpreter/session-inputs.ts";
import { wrong } from "./parse-run-arguments.ts";

/** The code of a cell from a file, or from standard input for `-`. Python reads files as UTF-8, with or without a byte order mark; so does this. */
export async function readScript(script: string, signal: AbortSignal): Promise<string> {
  const bytes = script === "-" ? await readStandardInput(signal) : await readNamed(script, "The script", signal);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    const message = `The script ${script === "-" ? "on standard input" : script} is not UTF-8 text.`;
    throw new UsageError({ code: "SCRIPT_NOT_TEXT", message, cause });
  }
}

export async function readInput(alias: string, file: string, signal: AbortSignal): Promise<SessionInput> {
  const format = formatOf(file);
  if (format === null) throw wrong(`--input ${alias}=${file}: known are ${dataFileEndings.join(", ")}.`);
  return { format, bytes: await readNamed(file, `The input ${alias}`, signal) };
}

async function readStandardInput(signal: AbortSignal): Promise<Buffer> {
  try {
    return Buffer.concat(await Array.fromAsync(addAbortSignal(signal, process.stdin) as AsyncIterable<Buffer>));
  } catch (error) {
    signal.throwIfAborted();
    throw notRead("The script", "standard input", error);
  }
}

async function readNamed(file: string, what: string, signal: AbortSignal): Promise<Buffer> {
  try {
    return await readFile(file, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw notRead(what, file, error);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EISDIR: "it is a directory",
  EACCES: "permission was denied",
};

function notRead(what: string, from: string, cause: unknown): UsageError {
  const { code = "", message } = cause as NodeJS.ErrnoException;
  return new UsageError({ code: "FILE_NOT_READ", message: `${what} cannot be read from ${from}: ${reasons[code] ?? message}.`, cause });
}
