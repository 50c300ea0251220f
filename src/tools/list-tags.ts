import type { BackendTool } from "./contract.ts";
import type { ToolCatalog } from "./create-tool-catalog.ts";

export interface TagsAnswer {
  /** The most used first. */
  readonly tags: readonly { readonly tag: string; readonly tools: number }[];
  readonly total: number;
}

const MAX_TAGS = 200;
const MAX_TAG_CHARACTERS = 80;

/** What `tags` answers: every tag with how many tools have it. The name of a server is a tag of its tools. */
export async function listTags({
  catalog,
  signal,
}: {
  readonly catalog: ToolCatalog;
  readonly signal?: AbortSignal | undefined;
}): Promise<TagsAnswer> {
  const { tools } = await catalog.list(signal);
  const counts = new Map<string, number>();
  for (const { tool } of tools) for (const tag of tagsOf(tool)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  const sorted = [...counts].sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1));
  return { tags: sorted.slice(0, MAX_TAGS).map(([tag, count]) => ({ tag, tools: count })), total: tools.length };
}

/** A tool's own tags and its server's name, each once. */
export function tagsOf({ tags, server }: BackendTool): string[] {
  return [...new Set([server, ...tags].map((tag) => tag.trim().slice(0, MAX_TAG_CHARACTERS)).filter((tag) => tag !== ""))];
}
