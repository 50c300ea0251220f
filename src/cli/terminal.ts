import { UsageError } from "../errors/sluice-error.ts";

/**
 * What a sandbox said, made fit for a person's terminal: characters that could move the cursor, set titles, hide text or turn its direction are shown and
 * not obeyed.
 */
export function toTerminal(text: string): string {
  return text.replaceAll(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]/g, (character) => {
    const code = character.charCodeAt(0);
    if (character === "\r") return character;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code < 0x100 ? `\\x${code.toString(16)}` : `\\u${code.toString(16)}`;
  });
}

/** Waits until the text is really out: a pipe may take less than all of it at once. */
export async function print(text: string): Promise<void> {
  await new Promise<void>((resolve, reject) => process.stdout.write(text, (error) => (error ? reject(error) : resolve())));
}

/** What was typed after `sluice COMMAND` cannot be. */
export function wrongUsage(command: string, message: string): UsageError {
  return new UsageError({ code: "WRONG_USAGE", message, hint: `sluice ${command} --help shows how it is called.` });
}
