/** Where a page ends, as a text that a client gives back. One that is not of ours is the same as none. */
export function toCursor(place: readonly string[]): string {
  return btoa(JSON.stringify(place)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export function fromCursor(cursor: string | undefined, unless: readonly [string, string]): readonly [string, string] {
  if (cursor === undefined) return unless;
  try {
    const place = JSON.parse(atob(cursor.replaceAll("-", "+").replaceAll("_", "/"))) as unknown;
    return Array.isArray(place) && place.length === 2 ? [String(place[0]), String(place[1])] : unless;
  } catch {
    return unless;
  }
}

/** A text to be found anywhere, whatever signs it has. */
export function likePattern(search: string): string {
  const text = search.trim();
  return text === "" ? "%" : `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
}
