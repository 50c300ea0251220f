import { quote } from "../errors/argument-path.ts";
import { createToolError, type ToolError } from "../errors/tool-error.ts";
import { nearestName } from "../errors/nearest-name.ts";
import { assignNames, toSafeName, type CatalogTool } from "./assign-names.ts";
import { createLimiter, type Limiter } from "../concurrency/create-limiter.ts";
import type { ToolListing, ToolSource } from "./backend-tool.ts";
import { orAbort } from "../concurrency/or-abort.ts";

export type { CatalogTool } from "./assign-names.ts";

/** The current tools. The same object as long as no source has changed. */
export interface ToolList {
  readonly tools: readonly CatalogTool[];
  readonly gaps: readonly ServerGap[];
  /** One sentence per tool whose name had to be changed. */
  readonly warnings: readonly string[];
}

type ServerGap = NonNullable<ToolListing["gap"]>;

type Resolution = { readonly ok: true; readonly tool: CatalogTool } | { readonly ok: false; readonly toolError: ToolError };

/** All tools of all sources, by name. Does not close the sources, because several catalogs can share them. */
export interface ToolCatalog extends AsyncDisposable {
  list(signal?: AbortSignal): Promise<ToolList>;
  resolve(name: string, signal?: AbortSignal): Promise<Resolution>;
  /** Limits concurrent calls of all callers of this catalog. */
  readonly slots: Limiter;
}

export interface ToolCatalogOptions {
  readonly sources: readonly ToolSource[];
  readonly maxConcurrentCalls?: number;
  /** Time limit for one source to list its tools. */
  readonly listTimeoutMs?: number;
}

export const DEFAULT_CONCURRENT_CALLS = 16;

export function createToolCatalog({
  sources,
  maxConcurrentCalls = DEFAULT_CONCURRENT_CALLS,
  listTimeoutMs = 15_000,
}: ToolCatalogOptions): ToolCatalog {
  /** Listings under way, shared by all callers. A source that timed out stays a gap, and is not asked again, until it answers. */
  const pending = new Map<ToolSource, Promise<ToolListing>>();
  /** By bare name, all tools that ever had it, as JSON `[server, name]`. So the name does not switch to another tool when a server is down. */
  const bareOwners = new Map<string, Set<string>>();
  let last: { readonly listings: readonly ToolListing[]; readonly indexed: IndexedList } | null = null;

  async function read(signal?: AbortSignal): Promise<IndexedList> {
    signal?.throwIfAborted();
    const listings = await orAbort(Promise.all(sources.map((source) => pending.get(source) ?? requestListing(source))), signal);
    if (last !== null && isUnchanged(last.listings, listings)) return last.indexed;
    const indexed = toIndexedList(listings, bareOwners);
    last = { listings, indexed };
    return indexed;
  }

  function requestListing(source: ToolSource): Promise<ToolListing> {
    const toGap = (reason: string): ToolListing => ({ tools: [], gap: { server: source.name, reason } });
    const { promise: timedOut, resolve } = Promise.withResolvers<ToolListing>();
    const timer = setTimeout(() => resolve(toGap(`It did not list its tools within ${listTimeoutMs / 1000} s.`)), listTimeoutMs);
    const listed = Promise.try(() => source.tools()).catch((error: unknown) =>
      toGap(error instanceof Error ? error.message : String(error)),
    );
    const listing = Promise.race([listed, timedOut]);
    pending.set(source, listing);
    void listed.then(() => {
      clearTimeout(timer);
      pending.delete(source);
    });
    return listing;
  }

  return {
    slots: createLimiter({ places: maxConcurrentCalls }),
    async list(signal) {
      return (await read(signal)).list;
    },
    async resolve(name, signal) {
      const { list, byName } = await read(signal);
      const tool = byName.get(name);
      if (tool !== undefined) return { ok: true, tool };
      const gap = findGapOf(name, list, bareOwners);
      return { ok: false, toolError: gap === null ? notFound(name, list) : unreachable(name, gap, list) };
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

interface IndexedList {
  readonly list: ToolList;
  readonly byName: ReadonlyMap<string, CatalogTool>;
}

function isUnchanged(before: readonly ToolListing[], now: readonly ToolListing[]): boolean {
  return before.every(({ tools, gap }, index) => {
    const other = now[index];
    const hasSameTools = other?.tools === tools || (tools.length === 0 && other?.tools.length === 0);
    return hasSameTools && other.gap?.server === gap?.server && other.gap?.reason === gap?.reason;
  });
}

function toIndexedList(listings: readonly ToolListing[], bareOwners: Map<string, Set<string>>): IndexedList {
  const all = listings.flatMap(({ tools }) => tools);
  for (const { server, name } of all) {
    const bare = toSafeName(name);
    const owners = bareOwners.get(bare) ?? new Set();
    bareOwners.set(bare, owners.add(JSON.stringify([server, name])));
  }
  const { tools, warnings } = assignNames(all, (bare) => (bareOwners.get(bare)?.size ?? 0) > 1);
  return { list: { tools, warnings, gaps: listings.flatMap(({ gap }) => (gap === null ? [] : [gap])) }, byName: indexNames(tools) };
}

/** Tools can also be called by their server's spelling, unless it is ambiguous or an assigned name. */
function indexNames(tools: readonly CatalogTool[]): ReadonlyMap<string, CatalogTool> {
  const byName = new Map<string, CatalogTool>();
  for (const tool of tools) byName.set(tool.fullName, tool);
  for (const tool of tools) if (tool.bareName !== null) byName.set(tool.bareName, tool);
  const spelled = Map.groupBy(tools, ({ tool }) => `${tool.server}__${tool.name}`);
  for (const [name, [tool, ...others]] of spelled) if (tool && others.length === 0 && !byName.has(name)) byName.set(name, tool);
  for (const tool of tools) if (tool.bareName !== null && !byName.has(tool.tool.name)) byName.set(tool.tool.name, tool);
  return byName;
}

/** The gap of the server in the name, or of the only server that ever had this bare name. */
function findGapOf(name: string, { tools, gaps }: ToolList, bareOwners: ReadonlyMap<string, ReadonlySet<string>>): ServerGap | null {
  const bare = toSafeName(name);
  if (tools.some(({ tool }) => toSafeName(tool.name) === bare)) return null;
  const owners = [...(bareOwners.get(bare) ?? [])].map((owner) => (JSON.parse(owner) as [server: string, name: string])[0]);
  const onlyOwner = owners.length === 1 ? owners[0] : null;
  const isNamed = (server: string): boolean => name.startsWith(`${server}__`) || name.startsWith(`${toSafeName(server)}__`);
  return gaps.find(({ server }) => isNamed(server) || server === onlyOwner) ?? null;
}

function unreachable(name: string, { server, reason }: ServerGap, { tools }: ToolList): ToolError {
  return createToolError({
    code: "UPSTREAM_UNREACHABLE",
    tool: name,
    summary: `The server ${quote(server)} of the tool ${quote(name)} cannot be used now: ${reason}`,
    hints: ["Try again later.", `search finds tools by what they do; there are ${tools.length} now.`],
  });
}

function notFound(name: string, { tools, gaps }: ToolList): ToolError {
  const namesakes = tools.filter(({ tool }) => tool.name === name || toSafeName(tool.name) === name).map(({ fullName }) => fullName);
  const similar = similarNames(name, tools);
  return createToolError({
    code: "TOOL_NOT_FOUND",
    tool: name,
    summary: `There is no tool ${quote(name)}.`,
    hints: [
      ...(namesakes.length > 0
        ? [`Include the server: ${namesakes.slice(0, 5).join(", ")}.`]
        : similar.length > 0
          ? [`Did you mean ${similar.map((one) => `'${one}'`).join(" or ")}?`]
          : []),
      ...gaps.map(({ server, reason }) => `Tools of the server ${quote(server)} are missing: ${reason}`),
      `search finds tools by what they do; there are ${tools.length}.`,
    ],
  });
}

const MAX_COMPARED = 2_000;

/** Up to three similar names, the most similar first. */
export function similarNames(wanted: string, tools: readonly CatalogTool[]): string[] {
  const known = new Map(
    tools.slice(0, MAX_COMPARED).flatMap((tool) => [tool.fullName, tool.name, tool.tool.name].map((name) => [name, tool.name] as const)),
  );
  const similar = new Set<string>();
  for (let round = 0; round < 4 && similar.size < 3; round += 1) {
    const name = nearestName(wanted, known.keys());
    if (name === null) break;
    similar.add(known.get(name)!);
    known.delete(name);
  }
  return [...similar];
}
