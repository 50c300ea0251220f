/** What a sandbox said, made fit for a person's terminal: control characters, which could move the cursor, set titles or hide text, are shown and not obeyed. */
export function toTerminal(text: string): string {
  return text.replaceAll(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, (character) => {
    const code = character.charCodeAt(0);
    if (character === "\r") return character;
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : `\\x${code.toString(16)}`;
  });
}

/** The same for text that is JSON, and stays it. */
export function jsonToTerminal(json: string): string {
  return json.replaceAll(/[\u007F-\u009F]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
}
