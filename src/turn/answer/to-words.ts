/** Only the words, in lower case: without Markdown, quotes, line breaks and punctuation. Starts and ends with a space. */
export function toWords(text: string): string {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return ` ${words.join(" ")} `;
}
