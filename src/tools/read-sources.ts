import type { ToolListing, ToolSource } from "./contract.ts";
import { orAbort } from "../waiting/or-abort.ts";

/** Reads what all sources offer now, each at the same time as the others. A source that fails or takes too long is a gap, and holds nobody up twice. */
export interface SourceReader {
  read(signal?: AbortSignal): Promise<readonly ToolListing[]>;
}

interface Pending {
  readonly listing: Promise<ToolListing>;
  readonly tooLate: Promise<ToolListing>;
}

export function createSourceReader(sources: readonly ToolSource[], timeoutMs: number): SourceReader {
  const pending = new Map<ToolSource, Pending>();

  return {
    async read(signal) {
      signal?.throwIfAborted();
      const listings = sources.map(readOne);
      return listings.every(isThere) ? listings : await orAbort(Promise.all(listings.map((listing) => Promise.resolve(listing))), signal);
    },
  };

  /** Shared by all who wait, so that one who gives up does not end it for the others; and its time counts from its start. */
  function readOne(source: ToolSource): ToolListing | Promise<ToolListing> {
    const current = pending.get(source) ?? start(source);
    return "tools" in current ? current : Promise.race([current.listing, current.tooLate]);
  }

  function start(source: ToolSource): ToolListing | Pending {
    const asked = listTools(source);
    if (isThere(asked)) return asked;
    const { promise: tooLate, resolve } = Promise.withResolvers<ToolListing>();
    const reason = `It did not say within ${timeoutMs / 1000} s which tools it has.`;
    const timer = setTimeout(() => resolve({ tools: [], gap: { server: source.name, reason } }), timeoutMs);
    const listing = asked.catch(gapOf(source)).finally(() => {
      clearTimeout(timer);
      pending.delete(source);
    });
    pending.set(source, { listing, tooLate });
    return { listing, tooLate };
  }
}

function isThere(listing: ToolListing | Promise<ToolListing>): listing is ToolListing {
  return "tools" in listing;
}

function listTools(source: ToolSource): ToolListing | Promise<ToolListing> {
  try {
    return source.tools();
  } catch (error) {
    return gapOf(source)(error);
  }
}

function gapOf({ name }: ToolSource): (error: unknown) => ToolListing {
  return (error) => ({ tools: [], gap: { server: name, reason: error instanceof Error ? error.message : String(error) } });
}
