import type { ToolError } from "../src/errors/tool-error.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import * as sluice from "../src/index.ts";
import { adsProgram, adsIdentities, openFace, setContext, type CodeModeFace } from "./fixtures/open-code-mode.ts";
import { openFlakyProxy, type FlakyProxy, type ProxyAnswer } from "./fixtures/open-flaky-proxy.ts";
import { openHttpProcess, type HttpProcess } from "./fixtures/open-http-process.ts";

/** Failures of a backend as scripts see them, and calls as the backend sees them. The ads backend runs over HTTP behind a proxy that can fail. */
let runtime: sluice.Runtime;
let server: HttpProcess;
let proxy: FlakyProxy;
let ads: sluice.ToolSource;
let catalog: sluice.ToolCatalog;
let identities: sluice.IdentityStore;
let face: CodeModeFace;

beforeAll(async () => {
  runtime = sluice.createRuntime({ cacheDirectory: sluice.cacheDirectory(), poolSize: 0 });
  server = await openHttpProcess(adsProgram, "--http", "0");
  proxy = await openFlakyProxy(server.url);
  ads = sluice.createMcpSource({ name: "ads", server: { url: proxy.url } });
  catalog = sluice.createToolCatalog({ sources: [ads] });
  identities = adsIdentities("header", "ads");
  face = openFace(runtime, { catalog, identity: identities.open({ tenant: "t", contextId: "s", subject: null }) });
  await face.execute("await call_tool('list_regions')");
}, 120_000);
afterAll(async () => {
  await catalog[Symbol.asyncDispose]();
  await ads[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  await runtime.close();
});
beforeEach(() => {
  Object.assign(proxy, { most: 0, holdMs: 0, holdUntil: Infinity, answer: () => null });
  proxy.calls.length = 0;
});

/** What a script catches from one call. */
const caught = (call: string, before = ""): string => `import json
${before}try:
    await ${call}
except RuntimeError as e:
    text = str(e)
    return json.loads(text) if text[0] == "{" else text
return "nothing was raised"`;

describe.each(["monty", "cpython"] as const)("calls from %s", (engine) => {
  const first = engine === "monty" ? "" : "import collections\n";

  it("in a gather reach the backend at once, sixteen by default", async () => {
    proxy.holdMs = 20_000;
    proxy.holdUntil = 16;
    const code = `${first}import asyncio\nlen(await asyncio.gather(*[call_tool('list_regions') for i in range(40)]))`;
    expect(await face.execute(code)).toMatchObject({ result: 40, toolCalls: 40, engine });
    expect([proxy.maxConcurrent, proxy.calls.length]).toEqual([16, 40]);
    proxy.maxConcurrent = 0;
    proxy.holdUntil = 3;
    expect(await face.execute(code, { concurrentToolCalls: 3 })).toMatchObject({ result: 40 });
    expect(proxy.maxConcurrent).toBe(3);
  });

  it("count towards the total limit while they are awaited, but not towards the computing limit", async () => {
    proxy.holdMs = 1_500;
    const code = `${first}await call_tool('list_regions')\n'done'`;
    const answer = await face.execute(code, { executionMs: 1_200 });
    expect(answer).toMatchObject({ status: "ok", result: "done" });
    expect(answer.timing.executionMs).toBeLessThan(1_200);
    proxy.holdMs = 5_000;
    expect((await face.execute(code, { totalMs: 800 })).error).toEqual({
      error_kind: "sandbox_runtime",
      tool: "execute",
      summary: "The script reached its total time limit of 800 ms. Waiting for tools counts.",
      details: [{ path: "totalMs", issue: expect.stringMatching(/^\d+ of 800$/) as string, received_type: "number" }],
      hints: [
        "Run calls concurrently with asyncio.gather.",
        "Do not poll: return after one status check, and check again in a later call.",
      ],
      examples: [],
      error_code: "SANDBOX_TIMEOUT",
      retryable: false,
      _envelope_version: 1,
    });
  });

  it("send the identity in headers, and not in arguments", async () => {
    const { result } = await face.execute(`${first}${setContext}(await call_tool("list_campaigns", {"page_size": 1}))["total"]`);
    expect(result).toBe(57);
    expect(proxy.calls).toMatchObject([
      {
        tool: "list_campaigns",
        args: { page_size: 1 },
        headers: { "x-ads-identity": "acme", "x-ads-region": "eu", "x-ads-profile": "eu-acme" },
      },
    ]);
  });
});

describe("an HTTP failure of a backend", () => {
  const answerWith = (answer: ProxyAnswer): void => {
    proxy.answer = () => answer;
  };

  it.each<[title: string, answer: ProxyAnswer, told: Partial<ToolError>, hint: string, attempts: number]>([
    [
      "429 Too Many Requests",
      { status: 429, headers: { "retry-after": "30" }, body: "slow down" },
      { error_kind: "rate_limited", error_code: "UPSTREAM_HTTP_429", retryable: true, _meta: { retry_after_seconds: 30 } },
      "Wait 30 s before the next call, and make fewer calls at once.",
      1,
    ],
    [
      "401 Unauthorized",
      { status: 401 },
      { error_kind: "auth_error", error_code: "AUTH_AUTHENTICATION", retryable: false },
      "The backend did not accept the credentials. A retry does not help; the identity or its credentials must be corrected.",
      1,
    ],
    [
      "403 Forbidden",
      { status: 403, body: "no" },
      { error_kind: "auth_error", error_code: "AUTH_PERMISSION", retryable: false },
      "The active identity is not permitted to do this. A retry does not help; choose another identity, profile or tool.",
      1,
    ],
    [
      "400 Bad Request",
      { status: 400, body: "what?" },
      { error_kind: "upstream_http", error_code: "UPSTREAM_HTTP_400", retryable: false },
      "The backend rejected this call. Read its message, change the arguments, then call again.",
      1,
    ],
    [
      "500 Internal Server Error",
      { status: 500, body: "oh no" },
      { error_kind: "upstream_http", error_code: "UPSTREAM_HTTP_500", retryable: true },
      "The error is in the backend. The same call may succeed after a while.",
      2,
    ],
    [
      "503 Service Unavailable",
      { status: 503, headers: { "retry-after": "60" } },
      { error_kind: "upstream_http", error_code: "UPSTREAM_HTTP_503", retryable: true, _meta: { retry_after_seconds: 60 } },
      "The error is in the backend. The same call may succeed after 60 s.",
      1,
    ],
  ])("%s is reported with its status, caught or not", async (status, answer, told, hint, attempts) => {
    answerWith(answer);
    const { result } = await face.execute(caught("call_tool('list_regions')"));
    const { body } = answer as { body?: string };
    const message = body ?? `The server "ads" answered with HTTP ${status.slice(0, 3)}.`;
    expect(result).toEqual({
      tool: "list_regions",
      summary: `list_regions failed: the backend answered HTTP ${status}. ${message}`,
      details: [
        {
          path: "",
          issue: `HTTP ${status}.`,
          received_type: body === undefined ? "missing" : "string",
          upstream_message: message,
          ...(body === undefined ? {} : { upstream_details: body }),
        },
      ],
      hints: [hint],
      examples: [],
      _envelope_version: 1,
      ...told,
    });
    expect(proxy.calls).toHaveLength(attempts);
    const uncaught = await face.execute("await call_tool('list_regions')");
    expect([uncaught.status, uncaught.error, uncaught.aliases]).toEqual(["error", result, []]);
  });

  it("without an answer is a retryable timeout", async () => {
    proxy.answer = () => "silence";
    const slow = openFace(runtime, { catalog, toolTimeoutMs: 300 });
    expect((await slow.execute("await call_tool('list_regions')")).error).toEqual({
      error_kind: "upstream_http",
      tool: "list_regions",
      summary: "list_regions did not answer within 0.3 s.",
      details: [{ path: "", issue: "No answer within 0.3 s.", received_type: "missing" }],
      hints: ["The call may have taken effect. Ask for less at once, or check the state before calling again."],
      examples: [],
      error_code: "UPSTREAM_HTTP_TIMEOUT",
      retryable: true,
      _envelope_version: 1,
    });
    expect(proxy.calls).toHaveLength(1);
  });

  it("of a stopped server is a retryable connection error", async () => {
    const gone = await openFlakyProxy(server.url);
    const source = sluice.createMcpSource({ name: "ads", server: { url: gone.url } });
    await using tools = sluice.createToolCatalog({ sources: [source] });
    const there = openFace(runtime, { catalog: tools });
    expect(await there.execute("len((await call_tool('list_regions'))['regions'])")).toMatchObject({ result: 3 });
    await gone[Symbol.asyncDispose]();
    const { error } = await there.execute("await call_tool('list_regions')");
    // Who reports it depends on whether the catalog has already noticed; the error is the same.
    expect(error).toMatchObject({ error_kind: "upstream_http", tool: "list_regions", error_code: "UPSTREAM_UNREACHABLE", retryable: true });
    expect(JSON.stringify(error)).toContain(`Nothing listens at ${gone.url} (connection refused).`);
    await source[Symbol.asyncDispose]();
  });
});

describe("a failure of a tool", () => {
  it("with an envelope is raised completely, can be caught in each task of a gather, and is returned unchanged if not caught", async () => {
    const code = `import asyncio, json
${setContext}async def one(id):
    try:
        return (await call_tool("get_budget_usage", {"campaign_id": id}))["campaign_id"]
    except RuntimeError as e:
        env = json.loads(str(e))
        return [env["error_kind"], env["error_code"], env["retryable"], env["_envelope_version"]]
return await asyncio.gather(one("eu-acme-c001"), one("eu-acme-c007"), one("nope"))`;
    expect((await face.execute(code)).result).toEqual([
      "eu-acme-c001",
      ["ads_api_http", "ADS_API_HTTP_500", true, 1],
      ["ads_api_http", "ADS_API_HTTP_404", false, 1],
    ]);
    const { error } = await face.execute(`${setContext}await call_tool("get_campaign", {"campaign_id": "nope"})`);
    expect(error).toEqual({
      error_kind: "ads_api_http",
      tool: "get_campaign",
      summary: "The advertising API answered with HTTP 404: There is no campaign nope.",
      details: [
        {
          path: "",
          issue: "There is no campaign nope.",
          received_type: "object",
          upstream_code: "404",
          upstream_message: "There is no campaign nope.",
          request_id: expect.stringMatching(/^req-\d+$/) as string,
        },
      ],
      hints: [],
      examples: [],
      error_code: "ADS_API_HTTP_404",
      retryable: false,
      _envelope_version: 1,
    });
  });

  it("is also found inside another exception, and in an exception group", async () => {
    const call = `await call_tool("get_campaign", {"campaign_id": "nope"})`;
    const nested = `${setContext}try:\n    ${call}\nexcept RuntimeError as e:\n    raise ValueError(f'could not get it: {e}')`;
    const grouped = `import asyncio\n${setContext}async with asyncio.TaskGroup() as group:\n    group.create_task(call_tool("get_campaign", {"campaign_id": "nope"}))`;
    for (const [code, engine] of [
      [nested, "monty"],
      [`import collections\n${nested}`, "cpython"],
      [grouped, "cpython"],
    ]) {
      expect(await face.execute(code!)).toMatchObject({ engine, error: { error_kind: "ads_api_http", error_code: "ADS_API_HTTP_404" } });
    }
  });

  it("without an envelope is a RuntimeError with type and message, and with the line of the script if not caught", async () => {
    const call = "call_tool('get_account_health')";
    expect((await face.execute(caught(call, setContext))).result).toBe("ToolError: account health is not available today");
    for (const first of ["import math", "import collections"]) {
      for (const waiting of [`await ${call}`, `await asyncio.gather(${call}, call_tool('list_regions'))`]) {
        const { error } = await face.execute(`${first}\nimport asyncio\n${setContext}\n${waiting}`);
        const said = "RuntimeError: ToolError: account health is not available today";
        const [detail] = error!.details;
        // Monty does not know the line of a call that a gather awaited.
        const isLost = first === "import math" && waiting.includes("gather");
        expect(error).toEqual({
          error_kind: "sandbox_runtime",
          tool: "execute",
          summary: isLost ? said : `${said} (line 7)`,
          details: [{ ...detail, path: "code", issue: isLost ? said : waiting, received_type: "python", line: isLost ? undefined : 7 }],
          hints: [],
          examples: [],
          error_code: "SANDBOX_RUNTIME_ERROR",
          retryable: false,
          _envelope_version: 1,
        });
        const place = first === "import math" ? "line 7" : 'File "<script>", line 7';
        const end = first === "import math" ? "" : "\n";
        expect([detail!["column"], detail!["traceback"]]).toEqual(
          isLost
            ? [undefined, undefined]
            : [1, `Traceback (most recent call last):\n  ${place}, in <module>\n    ${waiting}\n${said}${end}`],
        );
      }
    }
  });

  it("with a time to wait is retried once, and then reported", async () => {
    const { result } = await face.execute(caught('call_tool("get_bid_recommendations", {"campaign_id": "eu-acme-c002"})', setContext));
    expect(result).toMatchObject({ error_kind: "rate_limited", error_code: "ADS_API_HTTP_429", _meta: { retry_after_seconds: 1 } });
    expect(proxy.calls.map(({ tool }) => tool)).toEqual(["get_bid_recommendations", "get_bid_recommendations"]);
  });
});

describe("an invalid call", () => {
  it("of an unknown tool suggests similar names", async () => {
    expect((await face.execute("await call_tool('list_campaign')")).error).toEqual({
      error_kind: "tool_not_found",
      tool: "list_campaign",
      summary: 'There is no tool "list_campaign".',
      details: [],
      hints: ["Did you mean 'list_campaigns' or 'get_campaign'?", "search finds tools by what they do; there are 14."],
      examples: [],
      error_code: "TOOL_NOT_FOUND",
      retryable: false,
      _envelope_version: 1,
    });
  });

  it("that does not match the schema is refused before the call, with paths, received types, codes and hints", async () => {
    const { error } = await face.execute(`await call_tool("list_campaigns", {"page_size": "many", "state": "on", "next_token": 3})`);
    expect(error).toEqual({
      error_kind: "mcp_input_validation",
      tool: "list_campaigns",
      summary: expect.stringMatching(/^The tool was not called\. .+ And 2 more problems\.$/) as string,
      details: expect.arrayContaining([
        expect.objectContaining({ path: "page_size", received_type: "string", error_code: "SCHEMA_TYPE_MISMATCH" }),
        expect.objectContaining({ path: "state", received_type: "string", error_code: "SCHEMA_ENUM_MISMATCH" }),
        expect.objectContaining({ path: "next_token", received_type: "number", error_code: "SCHEMA_TYPE_MISMATCH" }),
      ]) as Record<string, unknown>[],
      hints: expect.any(Array) as string[],
      examples: [],
      error_code: "INPUT_VALIDATION_FAILED",
      retryable: false,
      _envelope_version: 1,
    });
    expect((await face.execute(`await call_tool("get_campaign", {})`)).error).toEqual({
      error_kind: "mcp_input_validation",
      tool: "get_campaign",
      summary: "The tool was not called. campaign_id is missing.",
      details: [
        {
          path: "campaign_id",
          issue: "campaign_id is missing.",
          received_type: "missing",
          error_code: "SCHEMA_REQUIRED",
        },
      ],
      hints: [],
      examples: [],
      error_code: "SCHEMA_REQUIRED",
      retryable: false,
      _envelope_version: 1,
    });
    expect(proxy.calls).toEqual([]);
  });

  it.each<[params: string, summary: string]>([
    ["[1]", "The parameters of call_tool must be a dict, not array."],
    ["'x'", "The parameters of call_tool must be a dict, not string."],
    ["[]", "The parameters of call_tool must be a dict, not array."],
    ["{'page_size': float('nan')}", "The parameters contain nan or inf, which have no JSON form."],
    ["{'page_size': 2**60}", "The integer 1152921504606846976 is past 2^53 and would lose digits on the way to the tool."],
  ])("with %s is refused with the same message by both engines", async (params, summary) => {
    for (const first of ["", "import collections\n"]) {
      const { error, engine } = await face.execute(`${first}await call_tool("list_campaigns", ${params})`);
      expect([engine, error?.["error_code"], error?.["summary"]]).toEqual([
        first === "" ? "monty" : "cpython",
        "SCHEMA_TYPE_MISMATCH",
        summary,
      ]);
    }
    expect(proxy.calls).toEqual([]);
  });

  it.each([
    "{'authorization': 'x'}",
    "{'filters': [{'api_key': 'abc'}]}",
    "{'campaign_id': 'Bearer abcdefghijklmnop'}",
    "{'Amazon-Ads-AccountId': 'x'}",
  ])("with a credential (%s) is refused", async (params) => {
    for (const tool of ["get_campaign", "set_region"]) {
      expect((await face.execute(`await call_tool("${tool}", ${params})`)).error).toMatchObject({
        error_kind: "mcp_input_validation",
        error_code: "CREDENTIAL_ARGUMENT",
        tool,
      });
    }
    expect(proxy.calls).toEqual([]);
  });
});

describe("the identity context", () => {
  const read = "await call_tool('get_session_state')";
  const total = `(await call_tool("list_campaigns", {"page_size": 1}))["campaigns"][0]["campaign_id"]`;
  const open = (contextId: string, subject: string | null = "a", tenant = "t"): CodeModeFace =>
    openFace(runtime, { catalog, identity: identities.open({ tenant, contextId, subject }) });

  it("is read without calling a backend", async () => {
    const state = { session_present: true, state_scope: "session", state_reason: null };
    expect((await face.execute(read)).result).toEqual(state);
    expect(await face.call("get_session_state")).toEqual(state);
    const alone = openFace(runtime, { catalog, identity: identities.openRequest() });
    expect(await alone.call("get_session_state")).toEqual({
      session_present: false,
      state_scope: "request",
      state_reason: "no_mcp_session",
    });
    expect(await alone.call("set_region", { region: "eu" })).toEqual({
      ...{ identity: null, region: "eu", profile: null },
      ...{ session_present: false, state_scope: "request", state_reason: "no_mcp_session" },
      note: "This lasts for this request only: set it again in each execute block.",
    });
    expect(proxy.calls).toEqual([]);
  });

  it("is never mixed up, also when scripts run at the same time", async () => {
    proxy.holdMs = 30;
    const block = (identity: string, region: string): string => `await call_tool("set_active_identity", {"identity": "${identity}"})
await call_tool("set_region", {"region": "${region}"})
await call_tool("set_active_profile", {"profile": "${region}-${identity}"})
ids = []
for i in range(4):
    ids.append(${total})
return ids`;
    const [one, two] = await Promise.all([open("one").execute(block("acme", "na")), open("two").execute(block("globex", "eu"))]);
    expect([one.result, two.result]).toEqual([Array(4).fill("na-acme-c001"), Array(4).fill("eu-globex-c001")]);
    expect(new Set(proxy.calls.map(({ headers }) => [headers["x-ads-identity"], headers["x-ads-profile"]].join(" ")))).toEqual(
      new Set(["acme na-acme", "globex eu-globex"]),
    );
    expect(await open("three").call("get_active_context")).toMatchObject({ identity: null, region: null, profile: null });
  });

  it("is cleared by another token before any call can use it, also for a script that is still running", async () => {
    const old = open("swap", "first");
    expect((await old.execute(setContext + total)).result).toBe("eu-acme-c001");
    proxy.calls.length = 0;
    proxy.holdMs = 300;
    const running = old.execute(`${total}\n${total}`);
    await expect.poll(() => proxy.calls.length).toBe(1);
    const next = open("swap", "second");
    expect(await next.call("get_session_state")).toEqual({ session_present: true, state_scope: "session", state_reason: "token_swapped" });
    expect((await running).error).toEqual({
      error_kind: "auth_error",
      tool: "list_campaigns",
      summary: "A request with another bearer token cleared the identity, region and profile while this one was running.",
      details: [],
      hints: ["No more tools can be called in this request. Send a new request and set the identity, region and profile again."],
      examples: [],
      error_code: "AUTHENTICATION_ERROR",
      retryable: false,
      _envelope_version: 1,
    });
    expect((await next.execute(total)).error).toEqual({
      error_kind: "precondition_failed",
      tool: "list_campaigns",
      summary: "There is no active identity, region, profile.",
      details: [],
      hints: [
        "Set the active identity, region, profile first.",
        "Identities: acme, globex. Regions: na, eu, fe. Profiles: see list_profiles.",
      ],
      examples: [],
      error_code: "ACTIVE_IDENTITY_REQUIRED",
      retryable: false,
      _envelope_version: 1,
    });
    expect(proxy.calls.map(({ headers }) => headers["x-ads-identity"])).toEqual(["acme", undefined]);
    expect((await next.execute(`${setContext}${read}`)).result).toMatchObject({ state_reason: null });
  });

  it("refuses names that are not configured, and suggests the closest one", async () => {
    expect(await face.call("set_region", { region: "ue" })).toEqual({
      status: "refused",
      error: {
        error_kind: "mcp_input_validation",
        tool: "set_region",
        summary: 'Unknown region "ue".',
        details: [{ path: "region", issue: "is not one of the configured regions", received_type: "string" }],
        hints: ['Did you mean "eu"?', 'The regions are "na", "eu", "fe".'],
        examples: [{ region: "eu" }],
        error_code: "SCHEMA_ENUM_MISMATCH",
        retryable: false,
        _envelope_version: 1,
      },
    });
    expect((await face.execute("await call_tool('set_region', {'region': 'eu', 'colour': 1})")).error).toEqual({
      error_kind: "mcp_input_validation",
      tool: "set_region",
      summary: "The tool was not called. colour is not a known field. Known fields: region.",
      details: [
        {
          path: "colour",
          issue: "colour is not a known field. Known fields: region.",
          received_type: "number",
          error_code: "SCHEMA_ADDITIONAL_PROPERTIES",
        },
      ],
      hints: ["colour: Known fields: region."],
      examples: [],
      error_code: "SCHEMA_ADDITIONAL_PROPERTIES",
      retryable: false,
      _envelope_version: 1,
    });
  });
});
