/** Notes in the results of `search` and `get_schema`. */

export const noToolsHint = "There are no tools.";

export function moreMatchesHint(more: number): string {
  return `${more} more match. Raise limit, or make the query more precise.`;
}

export interface NoMatch {
  readonly query: string;
  readonly tags: readonly string[];
  /** How many tools match the query alone. */
  readonly matchesWithoutTags: number;
  readonly similarNames: readonly string[];
  readonly availableTags: readonly string[];
}

const MAX_LISTED_TAGS = 40;

export function noMatchHints({ query, tags, matchesWithoutTags, similarNames, availableTags }: NoMatch): string[] {
  const start = query === "" ? "No tool matches" : `No tool matches ${JSON.stringify(query)}`;
  const listed = availableTags.slice(0, MAX_LISTED_TAGS).join(", ");
  return [
    tags.length === 0
      ? `${start}. Try other words, or an empty query to list all.`
      : `${start} with the tags ${tags.map((tag) => JSON.stringify(tag)).join(", ")}; ${matchesWithoutTags} without the tags.`,
    ...(similarNames.length > 0 ? [`Did you mean ${similarNames.map((name) => `'${name}'`).join(" or ")}?`] : []),
    `Available tags: ${listed}${availableTags.length > MAX_LISTED_TAGS ? ", …" : ""}.`,
  ];
}

/** In place of the reason for which a call would be refused. */
export const approvalNote = "A person must approve each call.";

export function schemaTooLargeNote(characters: number): string {
  return `Omitted: the schema has ${characters} characters. Use "detailed".`;
}

export const schemaNotJsonNote = "Omitted: the schema cannot be written as JSON.";
