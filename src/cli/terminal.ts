import { UsageError } from "../errors/sluice-error.ts";

/** Makes untrusted text safe for a terminal: shows characters that could move the cursor, set the title, hide text or change its direction. */
export function toTerminal(text: string): string {
  return text.replaceAll(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]/g, (character) => {
    const code = character.charCodeAt(0);
    if (character === "\r") return character;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code < 0x100 ? `\\x${code.toString(16)}` : `\\u${code.toString(16)}`;
  });
}

/** Writes to standard output and waits until everything is written. A pipe may accept only a part at a time. */
export async function print(text: string): Promise<void> {
  await new Promise<void>((resolve, reject) => process.stdout.write(text, (error) => (error ? reject(error) : resolve())));
}

export function wrongUsage(command: string, message: string): UsageError {
  return new UsageError({ code: "WRONG_USAGE", message, hint: `Run sluice ${command} --help for usage.` });
}
