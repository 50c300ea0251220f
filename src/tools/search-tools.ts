import { isRecord } from "../errors/is-record.ts";
import { nearNames, type CatalogTool, type ToolCatalog, type ToolList } from "./create-tool-catalog.ts";
import { describeTool, type ToolDescription, type ToolDetail } from "./describe-tool.ts";
import { createRankingIndex, type IndexedText, type RankingIndex } from "./discovery/rank.ts";
import { toWords } from "./discovery/to-words.ts";
import { tagsOf } from "./list-tags.ts";
import { followReferences, propertiesOf } from "./schema/read-schema.ts";
import type { ToolPolicy } from "./tool-policy.ts";

export interface SearchRequest {
  readonly query?: string | undefined;
  /** Tools that have all of them. */
  readonly tags?: readonly string[] | undefined;
  readonly detail?: ToolDetail | undefined;
  /** 10 unless told, at most 50. */
  readonly limit?: number | undefined;
  readonly policy?: ToolPolicy | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface SearchAnswer {
  /** "2 of 10 tools": how many are listed here, of how many there are. */
  readonly found: string;
  readonly tools: readonly ToolDescription[];
  /** What to do when this is not what was looked for. */
  readonly hints?: readonly string[];
  /** Servers whose tools are missing, and why. */
  readonly gaps?: readonly string[];
}

export interface ToolSearch {
  search(request: SearchRequest): Promise<SearchAnswer>;
}

const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 50;
const MAX_QUERY_CHARACTERS = 1_000;

/** What `search` answers: tools by what they do, the best first. The index is kept as long as the catalog's list is the same. */
export function createToolSearch(catalog: ToolCatalog): ToolSearch {
  const indexes = new WeakMap<ToolList, RankingIndex<CatalogTool>>();

  return {
    async search({ query = "", tags = [], detail = "brief", limit = DEFAULT_LIMIT, policy, signal }) {
      const list = await catalog.list(signal);
      const index = indexes.get(list) ?? createRankingIndex(list.tools.map(toIndexedText));
      indexes.set(list, index);
      const asked = query.slice(0, MAX_QUERY_CHARACTERS).trim();
      const ranked = asked === "" ? list.tools : rankWithNames(asked, list.tools, index);
      const matching = ranked.filter(({ tool }) => hasTags(tagsOf(tool), tags));
      const shown = matching.slice(0, Math.min(MAX_LIMIT, Math.max(1, Math.floor(limit) || DEFAULT_LIMIT)));
      const hints = shown.length === 0 ? nothingFound({ asked, tags, list, ranked }) : moreThere(shown.length, matching.length);
      return {
        found: `${shown.length} of ${list.tools.length} tools`,
        tools: shown.map((tool) => describeTool(tool, { detail, policy })),
        ...(hints.length > 0 ? { hints } : {}),
        ...(list.gaps.length > 0 ? { gaps: list.gaps.map(({ server, reason }) => `${server}: ${reason}`) } : {}),
      };
    },
  };
}

/** A tool that is called by its name comes first. */
function rankWithNames(query: string, tools: readonly CatalogTool[], index: RankingIndex<CatalogTool>): readonly CatalogTool[] {
  const named = tools.filter(({ name, fullName, tool }) => [name, fullName, tool.name].includes(query));
  return [...new Set([...named, ...index.rank(toWords(query))])];
}

/** Names count most, then titles and tags, then parameters, then words. */
function toIndexedText(entry: CatalogTool): IndexedText<CatalogTool> {
  const { name, title = "", description, inputSchema, server } = entry.tool;
  const parameters = parametersOf(entry);
  const fields: readonly (readonly [string, number])[] = [
    [name, 4],
    [title, 2],
    [tagsOf(entry.tool).join(" "), 2],
    [server, 1],
    [parameters, 1],
    [description, 1],
    [typeof inputSchema["description"] === "string" ? inputSchema["description"] : "", 0.5],
  ];
  const counts = new Map<string, number>();
  let length = 0;
  for (const [text, weight] of fields) {
    for (const word of toWords(text)) {
      counts.set(word, (counts.get(word) ?? 0) + weight);
      length += 1;
    }
  }
  return { item: entry, counts, length };
}

function parametersOf({ tool: { inputSchema } }: CatalogTool): string {
  const properties = Object.entries(propertiesOf(followReferences(inputSchema, inputSchema), inputSchema)).slice(0, 200);
  return properties
    .map(([name, schema]) => (isRecord(schema) && typeof schema["title"] === "string" ? `${name} ${schema["title"]}` : name))
    .join(" ");
}

function hasTags(own: readonly string[], wanted: readonly string[]): boolean {
  const known = new Set(own.map((tag) => tag.toLowerCase()));
  return wanted.every((tag) => known.has(tag.trim().toLowerCase()));
}

function moreThere(shown: number, matching: number): string[] {
  return matching > shown ? [`${matching - shown} more fit. Raise limit, or say more precisely what you look for.`] : [];
}

function nothingFound({
  asked,
  tags,
  list,
  ranked,
}: {
  asked: string;
  tags: readonly string[];
  list: ToolList;
  ranked: readonly CatalogTool[];
}): string[] {
  if (list.tools.length === 0) return ["There are no tools."];
  const near = nearNames(asked, list.tools);
  const known = [...new Set(list.tools.flatMap(({ tool }) => tagsOf(tool)))];
  const what = asked === "" ? "No tool" : `No tool for ${JSON.stringify(asked)}`;
  return [
    tags.length === 0
      ? `${what}. Try other words, or an empty query to list all.`
      : `${what} with the tags ${tags.map((tag) => JSON.stringify(tag)).join(", ")}. ${ranked.length} without them.`,
    ...(near.length > 0 ? [`Did you mean ${near.map((name) => `'${name}'`).join(" or ")}?`] : []),
    `Tags that exist: ${known.slice(0, 40).join(", ")}${known.length > 40 ? ", …" : ""}.`,
  ];
}
