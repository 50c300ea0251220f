import { describe, expect, it } from "vitest";
import type { BackendTool } from "./backend-tool.ts";
import { createToolCatalog } from "./create-tool-catalog.ts";
import { sampleSource, sampleTool } from "./fixtures/sample-tools.ts";
import { searchTools, type SearchAnswer, type SearchRequest } from "./search-tools.ts";

function toolOf(name: string, description: string, facts: Partial<BackendTool> = {}): BackendTool {
  return sampleTool({ name, description, server: "ads", ...facts });
}

const tools = [
  toolOf("listCampaigns", "All campaigns of a profile.", { tags: ["campaigns"] }),
  toolOf("get_campaign", "One campaign by its id.", {
    tags: ["campaigns"],
    inputSchema: { properties: { campaignId: { type: "string" } } },
  }),
  toolOf("update_campaign_budget", "Changes the daily budget.", { tags: ["campaigns", "write"] }),
  toolOf("create_report", "Starts a report about clicks and spend.", { tags: ["reports"] }),
  toolOf("get_report_status", "Whether a report is ready.", {
    tags: ["reports"],
    inputSchema: { properties: { reportId: { type: "string" } } },
  }),
  toolOf("list_profiles", "Profiles of the account."),
  toolOf("get_price", "The stock price of a ticker symbol.", { server: "market" }),
];
const source = sampleSource("ads", tools);
const catalog = createToolCatalog({ sources: [source] });

async function search(request: Omit<SearchRequest, "catalog">): Promise<SearchAnswer> {
  return await searchTools({ catalog, ...request });
}

async function namesFor(request: Omit<SearchRequest, "catalog">): Promise<string[]> {
  return (await search(request)).tools.map(({ name }) => name);
}

describe("search", () => {
  it("lists the best matches first, with the number of all tools", async () => {
    expect(await search({ query: "stock price" })).toEqual({
      found: "1 of 7 tools",
      tools: [{ name: "get_price", description: "The stock price of a ticker symbol." }],
    });
  });

  it.each([
    ["list campaigns", "listCampaigns"],
    ["budget of a campaign", "update_campaign_budget"],
    ["is my report ready", "get_report_status"],
    ["reportId", "get_report_status"],
    ["start reporting", "create_report"],
    ["ads__get_campaign", "get_campaign"],
    ["profile", "list_profiles"],
  ])("for %j lists %j first", async (query, first) => {
    expect((await namesFor({ query }))[0]).toBe(first);
  });

  it("filters by tags, lists all for an empty query, and respects the limit", async () => {
    expect(await namesFor({ query: "campaign", tags: ["Write"] })).toEqual(["update_campaign_budget"]);
    expect(await namesFor({ tags: ["market"] })).toEqual(["get_price"]);
    expect(await namesFor({ query: " " })).toHaveLength(7);
    const answer = await search({ limit: 2 });
    expect(answer.found).toBe("2 of 7 tools");
    expect(answer.hints).toEqual(["5 more match. Raise limit, or make the query more precise."]);
  });

  it("gives more detail on request", async () => {
    const { tools: found } = await search({ query: "get_campaign", detail: "detailed", limit: 1 });
    expect(found).toEqual([
      {
        name: "get_campaign",
        signature: "get_campaign(campaignId: str = ...) -> Any",
        description: "One campaign by its id.",
        tags: ["ads", "campaigns"],
      },
    ]);
  });

  it("suggests similar names and tags when nothing matches", async () => {
    expect(await search({ query: "getprise" })).toEqual({
      found: "0 of 7 tools",
      tools: [],
      hints: [
        'No tool matches "getprise". Try other words, or an empty query to list all.',
        "Did you mean 'get_price'?",
        "Available tags: ads, campaigns, write, reports, market.",
      ],
    });
    expect(await search({ query: "report", tags: ["nope"] })).toEqual({
      found: "0 of 7 tools",
      tools: [],
      hints: [
        'No tool matches "report" with the tags "nope"; 2 without the tags.',
        "Available tags: ads, campaigns, write, reports, market.",
      ],
    });
  });

  it("reports servers whose tools are missing", async () => {
    const down = createToolCatalog({ sources: [sampleSource("ads", [], "It is down.")] });
    expect(await searchTools({ catalog: down, query: "x" })).toEqual({
      found: "0 of 0 tools",
      tools: [],
      hints: ["There are no tools."],
      gaps: ["ads: It is down."],
    });
  });
});
