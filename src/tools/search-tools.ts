import { moreMatchesHint, noMatchHints, noToolsHint } from "../prompts/code-mode-tools.ts";
import { isRecord } from "../text/json.ts";
import { similarNames, type CatalogTool, type ToolCatalog, type ToolList } from "./create-tool-catalog.ts";
import { describeTool, gapTexts, nonEmpty, tagsOf, type ToolDescription, type ToolDetail } from "./describe-tool.ts";
import { followReferences, propertiesOf } from "./read-schema.ts";
import type { ToolPolicy } from "./tool-policy.ts";

export interface SearchRequest {
  readonly catalog: ToolCatalog;
  readonly query?: string | undefined;
  /** Only tools that have all of these tags. */
  readonly tags?: readonly string[] | undefined;
  readonly detail?: ToolDetail | undefined;
  /** Default: 10; at most 50. */
  readonly limit?: number | undefined;
  readonly policy?: ToolPolicy | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface SearchAnswer {
  /** "2 of 10 tools": how many of all tools are listed. */
  readonly found: string;
  readonly tools: readonly ToolDescription[];
  /** How to find other tools. */
  readonly hints?: readonly string[];
  /** Servers whose tools are missing, and why. */
  readonly gaps?: readonly string[];
}

const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 50;
const MAX_QUERY_CHARACTERS = 1_000;

/** The index of a list is built once, for all searches. */
const indexes = new WeakMap<ToolList, RankTools>();

/** The answer of `search`: tools found by what they do, the best match first. */
export async function searchTools(request: SearchRequest): Promise<SearchAnswer> {
  const { catalog, query = "", tags = [], detail = "brief", limit = DEFAULT_LIMIT, policy, signal } = request;
  const list = await catalog.list(signal);
  const rank = indexes.get(list) ?? createRankingIndex(list.tools.map(toIndexedTool));
  indexes.set(list, rank);
  const words = query.slice(0, MAX_QUERY_CHARACTERS).trim();
  const ranked = words === "" ? list.tools : rankWithNames(words, list.tools, rank);
  const matching = ranked.filter(({ tool }) => hasTags(tagsOf(tool), tags));
  const shown = matching.slice(0, Math.min(MAX_LIMIT, Math.max(1, Math.floor(limit) || DEFAULT_LIMIT)));
  const hints = toHints({ query: words, tags, list, ranked: ranked.length, matching: matching.length, shown: shown.length });
  return {
    found: `${shown.length} of ${list.tools.length} tools`,
    tools: shown.map((tool) => describeTool(tool, { detail, policy })),
    hints: nonEmpty(hints),
    gaps: nonEmpty(gapTexts(list)),
  };
}

interface SearchCounts {
  readonly query: string;
  readonly tags: readonly string[];
  readonly list: ToolList;
  /** Number of tools that match the query. */
  readonly ranked: number;
  /** Of these, how many have the tags. */
  readonly matching: number;
  readonly shown: number;
}

function toHints({ query, tags, list, ranked, matching, shown }: SearchCounts): string[] {
  if (shown > 0) return matching > shown ? [moreMatchesHint(matching - shown)] : [];
  if (list.tools.length === 0) return [noToolsHint];
  const availableTags = [...new Set(list.tools.flatMap(({ tool }) => tagsOf(tool)))];
  return noMatchHints({ query, tags, matchesWithoutTags: ranked, similarNames: similarNames(query, list.tools), availableTags });
}

/** Puts a tool whose name is the query first. */
function rankWithNames(query: string, tools: readonly CatalogTool[], rank: RankTools): readonly CatalogTool[] {
  const named = tools.filter(({ name, fullName, tool }) => [name, fullName, tool.name].includes(query));
  return [...new Set([...named, ...rank(toWords(query))])];
}

/** Names weigh most, then titles and tags, then parameters and descriptions. */
function toIndexedTool(entry: CatalogTool): IndexedTool {
  const { name, title = "", description, inputSchema, server } = entry.tool;
  const fields: readonly (readonly [string, number])[] = [
    [name, 4],
    [title, 2],
    [tagsOf(entry.tool).join(" "), 2],
    [server, 1],
    [listParameters(entry), 1],
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
  return { entry, counts, length };
}

function listParameters({ tool: { inputSchema } }: CatalogTool): string {
  const properties = Object.entries(propertiesOf(followReferences(inputSchema, inputSchema), inputSchema)).slice(0, 200);
  return properties
    .map(([name, schema]) => (isRecord(schema) && typeof schema["title"] === "string" ? `${name} ${schema["title"]}` : name))
    .join(" ");
}

function hasTags(own: readonly string[], wanted: readonly string[]): boolean {
  const known = new Set(own.map((tag) => tag.toLowerCase()));
  return wanted.every((tag) => known.has(tag.trim().toLowerCase()));
}

interface IndexedTool {
  readonly entry: CatalogTool;
  /** Weighted counts of the words in its texts. */
  readonly counts: ReadonlyMap<string, number>;
  /** Number of words in its texts. */
  readonly length: number;
}

/** Returns the tools that have any of the words, the best first. Equal ones stay in order. */
type RankTools = (words: readonly string[]) => readonly CatalogTool[];

/** The usual parameters of BM25: saturation of repeated words, and weight of the length of a text. */
const K1 = 1.2;
const B = 0.75;

/** BM25 over a few hundred tools with short texts. A word also matches longer words that start with it, with a lower score. */
function createRankingIndex(tools: readonly IndexedTool[]): RankTools {
  const toolCounts = new Map<string, number>();
  for (const { counts } of tools) for (const word of counts.keys()) toolCounts.set(word, (toolCounts.get(word) ?? 0) + 1);
  const averageLength = tools.reduce((sum, { length }) => sum + length, 0) / Math.max(1, tools.length) || 1;

  return (words) => {
    const terms = [...new Set(words)].map((word) => expand(word, toolCounts));
    return tools
      .map((tool) => ({ entry: tool.entry, score: terms.reduce((sum, term) => sum + scoreOf(tool, term), 0) }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .map(({ entry }) => entry);
  };

  function scoreOf({ counts, length }: IndexedTool, term: ReadonlyMap<string, number>): number {
    let best = 0;
    for (const [word, weight] of term) {
      const count = counts.get(word);
      if (count === undefined) continue;
      const idf = Math.log(1 + (tools.length - toolCounts.get(word)! + 0.5) / (toolCounts.get(word)! + 0.5));
      best = Math.max(best, (weight * idf * count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / averageLength)));
    }
    return best;
  }
}

/** The known words that match a word of the query, with their weights. */
function expand(word: string, known: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const words = new Map<string, number>(known.has(word) ? [[word, 1]] : []);
  if (word.length < 3) return words;
  for (const other of known.keys())
    if (other !== word && (other.startsWith(word) || (other.length > 3 && word.startsWith(other)))) words.set(other, 0.6);
  return words;
}

const stopWords = new Set(
  "a an and are as at be by can do does for from get have how i if in into is it its me my of on or that the this to use want what when which with you your".split(
    " ",
  ),
);

const MAX_CHARACTERS = 20_000;

/** The words of a text in lower case and singular. Names are split at `_`, `-` and capital letters. */
function toWords(text: string): string[] {
  const words = text
    .slice(0, MAX_CHARACTERS)
    .normalize("NFKC")
    .replaceAll(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
    .replaceAll(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")
    .map(toSingular);
  const meaningful = words.filter((word) => !stopWords.has(word));
  return meaningful.length > 0 ? meaningful : words;
}

/** Good enough for names of tools: `campaigns` is `campaign`, `queries` is `query`. */
function toSingular(word: string): string {
  if (word.length > 4 && word.endsWith("ies")) return `${word.slice(0, -3)}y`;
  if (word.length > 3 && word.endsWith("s") && !/(?:ss|us|is)$/.test(word)) return word.slice(0, -1);
  return word;
}
