/** Writes the note that follows a clipped text, from the number of missing characters. */
export type ClipNote = (missing: number) => string;

const defaultNote: ClipNote = (missing) => `… [+${missing} characters]`;

/** Returns the start of a text and a note, or the whole text if clipping would not make it shorter. Never splits a surrogate pair. */
export function clipText(text: string, maxCharacters: number, note: ClipNote = defaultNote): string {
  if (text.length <= maxCharacters) return text.toWellFormed();
  const start = startOf(text, maxCharacters);
  const clipped = `${start}${note(text.length - start.length)}`;
  return (clipped.length < text.length ? clipped : text).toWellFormed();
}

/** Shortens a text to `maxCharacters`, including the ellipsis. */
export function ellipsize(text: string, maxCharacters: number): string {
  return (text.length <= maxCharacters ? text : `${startOf(text, maxCharacters - 1)}…`).toWellFormed();
}

/** Returns both ends of a text with the note between them, or the whole text if clipping would not make it shorter. */
export function clipMiddle(text: string, maxCharacters: number, note: ClipNote): string {
  if (text.length <= maxCharacters) return text.toWellFormed();
  const start = startOf(text, Math.floor(maxCharacters / 2));
  const end = endOf(text, Math.floor(maxCharacters / 2));
  const clipped = `${start}${note(text.length - start.length - end.length)}${end}`;
  return (clipped.length < text.length ? clipped : text).toWellFormed();
}

export function startOf(text: string, characters: number): string {
  const start = text.slice(0, characters);
  return start.length < text.length ? start.replace(/[\uD800-\uDBFF]$/, "") : start;
}

export function endOf(text: string, characters: number): string {
  const end = characters <= 0 ? "" : text.slice(-characters);
  return end.length < text.length ? end.replace(/^[\uDC00-\uDFFF]/, "") : end;
}
