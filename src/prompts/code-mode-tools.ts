/** The tools around `execute`: descriptions, parameters, and the notes in results of `search` and `get_schema`. */

/** `execute` itself is described in describe-execute.ts. */
export const codeModeDescriptions = {
  search: "Find backend tools by what they do, best match first. Says how many of all tools are listed. An empty query lists them.",
  get_schema: "How to call backend tools and what they return: compact Python signatures, or JSON Schema.",
  tags: "Tags of the backend tools, and how many tools have each tag.",
  get_envelope_contract: "Every kind and code of the v1 error envelope, what each means and whether a retry helps.",
} as const;

export const codeModeParameters = {
  search: {
    query: "Words: what the tool should do, or its name.",
    tags: "Only tools that have all of these tags; see tags.",
    detail: "brief (default): one sentence each; detailed: Python signatures; full: JSON Schemas.",
    limit: "Default: 10.",
  },
  get_schema: {
    tools: "Names of tools.",
    detail: "brief: what the tool does; detailed (default): Python signatures; full: JSON Schemas.",
  },
  execute: { code: "Async Python; `return` or a final expression is the result." },
} as const;

const stateFields = "Returns session_present, state_scope and state_reason.";

/** Descriptions of the tools that read and set the identity context. */
export const identityToolDescriptions = {
  get_session_state: `${stateFields} Read-only, no I/O. Set the identity, region and profile again before the next call if state_scope is "request" or state_reason is not null. The scope cannot change within an execute block: one call is enough.`,
  set_active_identity: `Sets the identity for later calls. ${stateFields} Clears a region or profile that does not belong to this identity.`,
  set_region: `Sets the region for later calls. ${stateFields}`,
  set_active_profile: `Sets the profile for later calls. ${stateFields}`,
  get_active_context:
    "The active identity, region and profile by name, the names that can be set now, and the fields of get_session_state. Read-only, no I/O.",
} as const;

/** Describes the only parameter of a setter; `plural` is the field of `get_active_context` that lists its values. */
export function describeIdentityChoice(plural: "identities" | "regions" | "profiles"): string {
  return `A name that get_active_context lists under ${plural}.`;
}

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

/** `policy` of a tool whose calls need approval. For a tool that the policy refuses, it is the reason. */
export const approvalNote = "A person must approve each call.";

export function schemaTooLargeNote(characters: number): string {
  return `Omitted: the schema has ${characters} characters. Use "detailed".`;
}

export const schemaNotJsonNote = "Omitted: the schema cannot be written as JSON.";
