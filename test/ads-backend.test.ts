import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { createMcpSource } from "../src/tools/mcp/create-mcp-source.ts";
import { openHttpProcess, type HttpProcess } from "./fixtures/open-http-process.ts";
import type { ToolCallOptions, ToolSource } from "../src/tools/backend-tool.ts";

const program = path.join(import.meta.dirname, "../examples/backends/ads/ads-server.ts");
const acme = { "sluice/identity": "acme", "sluice/region": "eu", "sluice/profile": "eu-acme" };

interface Result {
  content: { type: string; text: string }[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
}

/** Returns a function that calls tools of a source. */
function createCaller(source: ToolSource) {
  return async (name: string, args: Record<string, unknown> = {}, options: ToolCallOptions = { meta: acme }): Promise<Result> => {
    const { tools, gap } = await source.tools();
    expect(gap).toBeNull();
    const { output } = await tools.find((tool) => tool.name === name)!.call(args, options);
    return output as Result;
  };
}

const openAds = (...args: string[]): ToolSource =>
  createMcpSource({ name: "ads", server: { command: process.execPath, args: [program, ...args] } });

function failureOf({ content, isError }: Result): Record<string, unknown> {
  expect(isError).toBe(true);
  return JSON.parse(content[0]!.text) as Record<string, unknown>;
}

describe("the sample ads backend on stdio", () => {
  let source: ToolSource;
  let call: ReturnType<typeof createCaller>;
  beforeAll(() => {
    source = openAds();
    call = createCaller(source);
  });
  afterAll(() => source[Symbol.asyncDispose]());

  it("lists its tools: one is destructive, the others are read-only, and all have tags", async () => {
    const { tools } = await source.tools();
    expect(tools.map(({ name }) => name)).toEqual([
      "list_regions",
      "list_profiles",
      "list_campaigns",
      "get_campaign",
      "list_ad_groups",
      "get_metrics",
      "get_bid_recommendations",
      "get_budget_usage",
      "create_report",
      "get_report_status",
      "download_report",
      "export_search_terms",
      "get_account_health",
      "delete_campaign",
    ]);
    const destructive = tools.filter(({ annotations }) => annotations.destructiveHint);
    expect(destructive.map(({ name, annotations }) => [name, annotations])).toEqual([
      ["delete_campaign", { readOnlyHint: false, destructiveHint: true }],
    ]);
    expect(tools.filter(({ annotations }) => annotations.readOnlyHint)).toHaveLength(13);
    expect(tools.find(({ name }) => name === "get_metrics")?.tags).toEqual(["ads", "metrics"]);
  });

  it("has three regions with one profile per identity in each", async () => {
    expect((await call("list_regions", {}, {})).structuredContent).toEqual({ regions: ["na", "eu", "fe"] });
    expect((await call("list_profiles", { region: "fe" }, {})).structuredContent).toEqual({
      profiles: [
        { profile_id: "fe-acme", identity: "acme", region: "fe", country: "JP", currency: "JPY" },
        { profile_id: "fe-globex", identity: "globex", region: "fe", country: "JP", currency: "JPY" },
      ],
    });
  });

  it("requires an active identity, region and profile", async () => {
    expect(failureOf(await call("list_campaigns", {}, { meta: { "sluice/region": "eu" } }))).toEqual({
      error_kind: "precondition_failed",
      tool: "list_campaigns",
      summary: "There is no active identity, profile.",
      details: [],
      hints: ["Set the active identity, profile first.", "Identities: acme, globex. Regions: na, eu, fe. Profiles: see list_profiles."],
      examples: [],
      error_code: "ACTIVE_IDENTITY_REQUIRED",
      retryable: false,
      _envelope_version: 1,
    });
    expect(failureOf(await call("list_campaigns", {}, { meta: { ...acme, "sluice/identity": "globex" } }))).toMatchObject({
      error_kind: "auth_error",
      error_code: "AUTH_PERMISSION",
      summary: "The identity globex has no profile eu-acme in the region eu.",
    });
  });

  it("returns all campaigns in pages", async () => {
    const ids: string[] = [];
    let token: string | null | undefined;
    do {
      const page = (await call("list_campaigns", token ? { next_token: token } : {})).structuredContent as {
        campaigns: { campaign_id: string }[];
        next_token: string | null;
        total: number;
      };
      expect(page.total).toBe(57);
      ids.push(...page.campaigns.map(({ campaign_id }) => campaign_id));
      token = page.next_token;
    } while (token !== null);
    expect(ids).toHaveLength(57);
    expect(new Set(ids).size).toBe(57);
    expect(failureOf(await call("list_campaigns", { next_token: "made up" }))).toMatchObject({
      error_code: "ADS_API_HTTP_400",
      retryable: false,
    });
  });

  it("returns metrics per day and reports an invalid period", async () => {
    const period = { campaign_id: "eu-acme-c001", start_date: "2026-01-01", end_date: "2026-01-31" };
    const { days } = (await call("get_metrics", period)).structuredContent as { days: { date: string }[] };
    expect([days.length, days[0]?.date, days.at(-1)?.date]).toEqual([31, "2026-01-01", "2026-01-31"]);
    expect(failureOf(await call("get_metrics", { ...period, end_date: "2027-01-01" }))).toMatchObject({
      error_kind: "mcp_input_validation",
      details: [{ path: "end_date", issue: "is more than 92 days after start_date", received_type: "string" }],
    });
    expect(failureOf(await call("get_metrics", { ...period, campaign_id: "eu-acme-c999" }))).toMatchObject({
      error_kind: "ads_api_http",
      error_code: "ADS_API_HTTP_404",
      summary: "The advertising API answered with HTTP 404: There is no campaign eu-acme-c999.",
    });
    expect((await call("list_ad_groups", { campaign_id: "eu-acme-c001" })).structuredContent).toHaveProperty("ad_groups");
  });

  it("limits the rate of bid recommendations and returns them at the third call", async () => {
    const args = { campaign_id: "eu-acme-c002" };
    for (const _ of [1, 2]) {
      expect(failureOf(await call("get_bid_recommendations", args))).toMatchObject({
        error_kind: "rate_limited",
        error_code: "ADS_API_HTTP_429",
        retryable: true,
        _meta: { retry_after_seconds: 1 },
      });
    }
    expect((await call("get_bid_recommendations", args)).structuredContent).toHaveProperty("recommendations");
  });

  it("fails with 500 for campaigns whose id ends in 7, and only for them", async () => {
    expect(failureOf(await call("get_budget_usage", { campaign_id: "eu-acme-c017" }))).toMatchObject({
      error_kind: "ads_api_http",
      error_code: "ADS_API_HTTP_500",
      retryable: true,
    });
    expect((await call("get_budget_usage", { campaign_id: "eu-acme-c018" })).structuredContent).toMatchObject({
      campaign_id: "eu-acme-c018",
    });
  });

  it("needs several status checks for a report", async () => {
    const { report_id } = (await call("create_report", { start_date: "2026-01-01", end_date: "2026-01-02" })).structuredContent!;
    expect(failureOf(await call("download_report", { report_id }))).toMatchObject({ error_code: "ADS_API_HTTP_409" });
    const statuses = [];
    for (const _ of [1, 2, 3]) statuses.push((await call("get_report_status", { report_id })).structuredContent?.["status"]);
    expect(statuses).toEqual(["IN_PROGRESS", "IN_PROGRESS", "COMPLETED"]);
    expect((await call("download_report", { report_id })).structuredContent?.["rows"]).toHaveLength(2 * 57);
    const globex = { "sluice/identity": "globex", "sluice/region": "eu", "sluice/profile": "eu-globex" };
    expect(failureOf(await call("download_report", { report_id }, { meta: globex }))).toMatchObject({ error_code: "ADS_API_HTTP_404" });
  });

  it("returns 5 MB of search terms whose text arrives unchanged", async () => {
    const { tools } = await source.tools();
    const answer = await tools.find(({ name }) => name === "export_search_terms")!.call({}, { meta: acme });
    const item = createEvidenceStore().add({ tool: "export_search_terms", ...answer });
    expect(item.bytes).toBeGreaterThan(5_000_000);
    expect([item.precisionLoss, item.shape.path]).toEqual([undefined, ["search_terms"]]);
    const { search_terms: rows } = JSON.parse(Buffer.from(item.read()).toString("utf8")) as { search_terms: unknown[] };
    expect(item.shape.rows).toBe(rows.length);
  });

  it("has one tool that fails without a tool error", async () => {
    expect(await call("get_account_health")).toMatchObject({
      isError: true,
      content: [{ type: "text", text: "account health is not available today" }],
    });
  });

  it("deletes a campaign permanently", async () => {
    const args = { campaign_id: "eu-acme-c057" };
    expect((await call("delete_campaign", args)).structuredContent).toEqual({ deleted: "eu-acme-c057", remaining: 56 });
    expect(failureOf(await call("get_campaign", args))).toMatchObject({ error_code: "ADS_API_HTTP_404" });
  });
});

describe("the sample ads backend", () => {
  it("has the same data for the same seed and other data for another seed", async () => {
    const sources = [openAds("--seed", "1"), openAds("--seed", "1"), openAds("--seed", "2")];
    const answers = await Promise.all(sources.map(async (source) => (await createCaller(source)("list_campaigns")).structuredContent));
    expect(answers[0]).toEqual(answers[1]);
    expect(answers[0]).not.toEqual(answers[2]);
    await Promise.all(sources.map((source) => source[Symbol.asyncDispose]()));
  });

  it("takes the active profile from headers over HTTP", async () => {
    await using server: HttpProcess = await openHttpProcess(program, "--http", "0");
    await using source = createMcpSource({ name: "ads", server: { url: server.url } });
    const headers = { "X-Ads-Identity": "globex", "X-Ads-Region": "na", "X-Ads-Profile": "na-globex" };
    const { structuredContent } = await createCaller(source)("list_campaigns", { page_size: 1 }, { headers });
    expect(structuredContent).toMatchObject({ campaigns: [{ campaign_id: "na-globex-c001" }], next_token: "1" });
    expect(failureOf(await createCaller(source)("list_campaigns", {}, {}))).toMatchObject({ error_code: "ACTIVE_IDENTITY_REQUIRED" });
  });
});
