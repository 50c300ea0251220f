import { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { makeAdGroups, makeCampaigns, makeMetrics, makeSearchTerms, profiles, regions, type Campaign, type Profile } from "./ads-data.ts";
import { checkPeriod, httpFailure, unlessFailure, rateLimited, type AdsFailure } from "./ads-failure.ts";
import { createAdder } from "./create-adder.ts";

export interface AdsBackendOptions {
  /** The same seed gives the same data. */
  readonly seed: number;
  /** How many calls of `get_bid_recommendations` for a campaign get 429 before one succeeds. */
  readonly rateLimitedCalls?: number;
  /** How many calls of `get_report_status` return IN_PROGRESS before the report is ready. */
  readonly pendingPolls?: number;
}

interface Report {
  readonly report_id: string;
  readonly profile_id: string;
  readonly start_date: string;
  readonly end_date: string;
  polls: number;
}

const date = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, "must be a date like 2026-01-31");
const campaignId = z.string().describe("As in list_campaigns.");
const period = { start_date: date.describe("First day."), end_date: date.describe("Last day, included; at most 92 days after the first.") };
const campaignSchema = z.object({
  campaign_id: z.string(),
  name: z.string(),
  state: z.enum(["enabled", "paused", "archived"]),
  daily_budget: z.number(),
  start_date: z.string(),
});
const metricsSchema = z.object({
  campaign_id: z.string(),
  days: z.array(z.object({ date: z.string(), impressions: z.number(), clicks: z.number(), cost: z.number(), sales: z.number() })),
});

/**
 * An MCP server that imitates an ads service. Its state lives as long as the process. `createServer` creates the MCP server for one connection (stdio) or one
 * request (HTTP).
 */
export function createAdsBackend({ seed, rateLimitedCalls = 2, pendingPolls = 2 }: AdsBackendOptions): {
  createServer(context: { requestInfo?: Request }): McpServer;
} {
  const campaigns = new Map(profiles.map(({ profile_id }) => [profile_id, makeCampaigns(seed, profile_id)]));
  const reports = new Map<string, Report>();
  const limited = new Map<string, number>();
  let requests = 0;
  const nextRequestId = () => `req-${(requests += 1)}`;

  function findCampaign({ profile_id }: Profile, id: string): Campaign | AdsFailure {
    return (
      campaigns.get(profile_id)?.find(({ campaign_id }) => campaign_id === id) ??
      httpFailure(404, `There is no campaign ${id}.`, nextRequestId())
    );
  }

  function findReport({ profile_id }: Profile, id: string): Report | AdsFailure {
    const report = reports.get(id);
    return report?.profile_id === profile_id ? report : httpFailure(404, `There is no report ${id}.`, nextRequestId());
  }

  function createServer({ requestInfo }: { requestInfo?: Request }): McpServer {
    const server = new McpServer({ name: "sample-ads", version: "1.0.0" }, { capabilities: { tools: {} } });
    const headers = requestInfo?.headers;
    const add = createAdder(server, headers);

    add.open("list_regions", { description: "The regions of the service.", tags: ["account"] }, z.object({}), () => ({
      regions: [...regions],
    }));
    add.open(
      "list_profiles",
      { description: "The advertiser profiles, with their identity, region and currency.", tags: ["account"] },
      z.object({ region: z.enum(regions).optional() }),
      ({ region }) => ({ profiles: profiles.filter((profile) => region === undefined || profile.region === region) }),
    );
    add.forProfile(
      "list_campaigns",
      {
        description: "The campaigns of the active profile, one page at a time: pass next_token until it is null.",
        tags: ["campaigns"],
        outputSchema: z.object({ campaigns: z.array(campaignSchema), next_token: z.string().nullable(), total: z.number() }),
      },
      z.object({
        state: z.enum(["enabled", "paused", "archived"]).optional(),
        page_size: z.int().min(1).max(50).default(20),
        next_token: z.string().optional(),
      }),
      ({ state, page_size, next_token = "0" }, { profile_id }) => {
        const all = (campaigns.get(profile_id) ?? []).filter((campaign) => state === undefined || campaign.state === state);
        const from = /^\d{1,6}$/.test(next_token) ? Number(next_token) : -1;
        if (from < 0) return httpFailure(400, "next_token is not valid.", nextRequestId());
        const next = from + page_size;
        return { campaigns: all.slice(from, next), next_token: next < all.length ? String(next) : null, total: all.length };
      },
    );
    add.forProfile(
      "get_campaign",
      { description: "One campaign.", tags: ["campaigns"], outputSchema: campaignSchema },
      z.object({ campaign_id: campaignId }),
      (args, profile) => findCampaign(profile, args.campaign_id),
    );
    add.forProfile(
      "list_ad_groups",
      { description: "The ad groups of a campaign.", tags: ["campaigns"] },
      z.object({ campaign_id: campaignId }),
      (args, profile) =>
        unlessFailure(findCampaign(profile, args.campaign_id), ({ campaign_id }) => ({ ad_groups: makeAdGroups(seed, campaign_id) })),
    );
    add.forProfile(
      "get_metrics",
      {
        description: "Impressions, clicks, cost and sales of a campaign, one row per day.",
        tags: ["metrics"],
        outputSchema: metricsSchema,
      },
      z.object({ campaign_id: campaignId, ...period }),
      (args, profile) =>
        checkPeriod(args) ??
        unlessFailure(findCampaign(profile, args.campaign_id), ({ campaign_id }) => ({
          campaign_id,
          days: makeMetrics(seed, campaign_id, args.start_date, args.end_date),
        })),
    );
    add.forProfile(
      "get_bid_recommendations",
      { description: "Suggested bids for a campaign's ad groups. The service limits how often it may be asked.", tags: ["metrics"] },
      z.object({ campaign_id: campaignId }),
      (args, profile) =>
        unlessFailure(findCampaign(profile, args.campaign_id), ({ campaign_id }) => {
          const refused = limited.get(campaign_id) ?? 0;
          limited.set(campaign_id, refused + 1);
          if (refused < rateLimitedCalls) return rateLimited(1);
          const bids = makeAdGroups(seed, campaign_id).map(({ ad_group_id, default_bid }) => ({ ad_group_id, bid: default_bid * 1.25 }));
          return { recommendations: bids };
        }),
    );
    add.forProfile(
      "get_budget_usage",
      {
        description: "How much of its daily budget a campaign has used. The service behind it fails for some campaigns.",
        tags: ["metrics"],
      },
      z.object({ campaign_id: campaignId }),
      (args, profile) =>
        unlessFailure(findCampaign(profile, args.campaign_id), ({ campaign_id, daily_budget }) => {
          if (campaign_id.endsWith("7")) return httpFailure(500, "The budget service is not available.", nextRequestId());
          return { campaign_id, daily_budget, used: makeMetrics(seed, campaign_id, "2026-01-01", "2026-01-01")[0]?.cost ?? 0 };
        }),
    );
    add.forProfile(
      "create_report",
      {
        description: "Orders a report over all campaigns. It takes a while: ask get_report_status, then download_report.",
        tags: ["reports"],
      },
      z.object(period),
      (args, { profile_id }) => {
        const wrong = checkPeriod(args);
        if (wrong !== null) return wrong;
        const report = { report_id: `rep-${reports.size + 1}`, profile_id, start_date: args.start_date, end_date: args.end_date, polls: 0 };
        reports.set(report.report_id, report);
        return { report_id: report.report_id, status: "PENDING" };
      },
    );
    add.forProfile(
      "get_report_status",
      { description: "Whether a report is ready. Do not poll: check once, and again only when the user asks.", tags: ["reports"] },
      z.object({ report_id: z.string() }),
      (args, profile) =>
        unlessFailure(findReport(profile, args.report_id), (report) => {
          report.polls += 1;
          return { report_id: report.report_id, status: report.polls > pendingPolls ? "COMPLETED" : "IN_PROGRESS" };
        }),
    );
    add.forProfile(
      "download_report",
      { description: "The rows of a COMPLETED report: one row per campaign and day.", tags: ["reports"] },
      z.object({ report_id: z.string() }),
      (args, profile) =>
        unlessFailure(findReport(profile, args.report_id), ({ report_id, polls, start_date, end_date }) => {
          if (polls <= pendingPolls) return httpFailure(409, "The report is not ready.", nextRequestId());
          const rows = (campaigns.get(profile.profile_id) ?? []).flatMap(({ campaign_id }) =>
            makeMetrics(seed, campaign_id, start_date, end_date).map((day) => ({ campaign_id, ...day })),
          );
          return { report_id, rows };
        }),
    );
    add.forProfile(
      "export_search_terms",
      { description: "Every search term of the active profile: about 5 MB.", tags: ["reports"] },
      z.object({}),
      (_args, { profile_id }) => ({ search_terms: makeSearchTerms(seed, profile_id) }),
    );
    add.forProfile("get_account_health", { description: "The health of the account.", tags: ["account"] }, z.object({}), () => {
      throw new Error("account health is not available today");
    });
    add.forProfile(
      "delete_campaign",
      { description: "Deletes a campaign permanently.", tags: ["campaigns"], isDestructive: true },
      z.object({ campaign_id: campaignId }),
      (args, profile) =>
        unlessFailure(findCampaign(profile, args.campaign_id), ({ campaign_id }) => {
          const rest = (campaigns.get(profile.profile_id) ?? []).filter((campaign) => campaign.campaign_id !== campaign_id);
          campaigns.set(profile.profile_id, rest);
          return { deleted: campaign_id, remaining: rest.length };
        }),
    );
    return server;
  }

  return { createServer };
}
