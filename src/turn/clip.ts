/** Its beginning, and how much is missing; as it is when that would not be shorter. */
export function clip(text: string, characters: number): string {
  const more = text.length - characters;
  const note = `… [${more} characters were left out to make room]`;
  return more <= note.length ? text : `${text.slice(0, characters)}${note}`;
}
