/** The beginning of a text, and how much is missing. Never cuts a character in half. */
export function clipText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text.toWellFormed();
  const start = text.slice(0, maxCharacters);
  const kept = endsInHalf(start) ? start.slice(0, -1) : start;
  return `${kept.toWellFormed()}… [+${text.length - kept.length} characters]`;
}

function endsInHalf(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}
