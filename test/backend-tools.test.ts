import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createMcpSource } from "../src/tools/mcp/create-mcp-source.ts";
import { callBackendTool, type BackendReply } from "../src/tools/call-backend-tool.ts";
import type { ToolSource } from "../src/tools/backend-tool.ts";
import { createToolCatalog, type ToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { describeTools } from "../src/tools/describe-tool.ts";
import { searchTools } from "../src/tools/search-tools.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";

/** All checks and failures of a call, with a real MCP server process. */
const program = path.join(import.meta.dirname, "../examples/backends/ads/ads-server.ts");
const meta = { "sluice/identity": "acme", "sluice/region": "eu", "sluice/profile": "eu-acme" };
const policy = createToolPolicy();
let source: ToolSource;
let catalog: ToolCatalog;
let waits: number[] = [];

beforeAll(() => {
  source = createMcpSource({ name: "ads", server: { command: process.execPath, args: [program] } });
  catalog = createToolCatalog({ sources: [source] });
});
afterAll(async () => {
  await catalog[Symbol.asyncDispose]();
  await source[Symbol.asyncDispose]();
});

function call(name: string, args: unknown = {}): Promise<BackendReply> {
  waits = [];
  const wait = (milliseconds: number): Promise<void> => {
    waits.push(milliseconds);
    return Promise.resolve();
  };
  return callBackendTool({ catalog, policy, name, args, meta, wait });
}

async function firstCampaign(isSuitable: (id: string) => boolean): Promise<string> {
  const reply = await call("list_campaigns", { page_size: 50 });
  if (!reply.ok) throw new Error(JSON.stringify(reply.failure));
  const { campaigns } = (reply.answer.output as { structuredContent: { campaigns: { campaign_id: string }[] } }).structuredContent;
  return campaigns.map(({ campaign_id }) => campaign_id).find(isSuitable)!;
}

it("finds and describes tools", async () => {
  const { found, tools } = await searchTools({ catalog, query: "is the report ready", limit: 1 });
  expect([found, tools]).toEqual(["1 of 14 tools", [{ name: "get_report_status", description: "Whether a report is ready." }]]);
  expect((await describeTools({ catalog, tools: "list_campaigns" })).tools[0]?.signature).toBe(
    'list_campaigns(state: Literal["enabled", "paused", "archived"] = ..., page_size: int = 20, next_token: str = ...) -> Result',
  );
});

it("calls a tool by either name and accepts a page token as an argument", async () => {
  const first = await call("ads__list_campaigns", { page_size: 2 });
  expect(first).toMatchObject({ ok: true, tool: { name: "list_campaigns" }, attempts: 1 });
  const { next_token } = ((first as { answer: { output: unknown } }).answer.output as { structuredContent: { next_token: string } })
    .structuredContent;
  expect(await call("list_campaigns", { next_token })).toMatchObject({ ok: true });
});

it("refuses an invalid call before it reaches the server", async () => {
  expect(await call("get_metrics", { campaign_id: "c1", start_date: "yesterday" })).toMatchObject({
    ok: false,
    attempts: 0,
    failure: {
      toolError: {
        error_code: "INPUT_VALIDATION_FAILED",
        details: [
          { path: "end_date", error_code: "SCHEMA_REQUIRED" },
          { path: "start_date", error_code: "SCHEMA_PATTERN_MISMATCH" },
        ],
        examples: [],
      },
    },
  });
  expect(await call("get_campaign", { campaign_id: "c1", access_token: "x" })).toMatchObject({
    failure: { toolError: { error_code: "CREDENTIAL_ARGUMENT" } },
  });
  expect(await call("delete_campaign", { campaign_id: "c1" })).toMatchObject({
    failure: { toolError: { error_code: "TOOL_NOT_ALLOWED" } },
  });
  expect(await call("list_campaign")).toMatchObject({
    failure: { toolError: { hints: ["Did you mean 'list_campaigns' or 'get_campaign'?", expect.any(String)] } },
  });
});

it("passes on tool errors of the server and retries once if that may help", async () => {
  expect(await call("get_campaign", { campaign_id: "nope" })).toMatchObject({
    ok: false,
    failure: { kind: "toolError", toolError: { error_kind: "ads_api_http", error_code: "ADS_API_HTTP_404", retryable: false } },
    attempts: 1,
  });
  const campaign_id = await firstCampaign((id) => !id.endsWith("7"));
  expect(await call("get_bid_recommendations", { campaign_id })).toMatchObject({
    ok: false,
    failure: { toolError: { error_kind: "rate_limited", error_code: "ADS_API_HTTP_429", _meta: { retry_after_seconds: 1 } } },
    attempts: 2,
  });
  expect(waits).toEqual([1_000]);
  expect(await call("get_bid_recommendations", { campaign_id })).toMatchObject({ ok: true, attempts: 1 });
});

it("keeps a failure without a tool error plain", async () => {
  expect(await call("get_account_health")).toMatchObject({
    ok: false,
    failure: { kind: "plain", type: "ToolError", message: "account health is not available today" },
    attempts: 1,
  });
});
