import { describe, expect, it } from "vitest";
import { toolErrorSchema } from "../../errors/tool-error.ts";
import type { IdentityConfiguration } from "./identity-configuration.ts";
import type { CalledTool, IdentityAnswer, IdentityContext } from "./identity-context.ts";
import { createIdentityState } from "./create-identity-state.ts";
import { identityTools } from "./identity-tools.ts";

const configuration: IdentityConfiguration = {
  identities: {
    choices: { "acme-eu": { value: "ENTITY-1" }, "acme-us": { value: "ENTITY-2" } },
    rides: [{ as: "header", name: "Amazon-Ads-AccountId", servers: ["ads"] }],
  },
  regions: { choices: { EU: {}, NA: {}, FE: {} }, rides: [{ as: "meta", name: "ads/region", servers: ["ads", "reports"] }] },
  profiles: {
    choices: {
      "berlin-shop": { value: "111", identities: ["acme-eu"] },
      "austin-shop": { value: "222", identities: ["acme-us"] },
      test: {},
    },
    rides: [{ as: "argument", name: "profileId", servers: ["ads"] }],
  },
  identityRequired: ["ads__list_campaigns", "billing__*"],
};

const session = { session_present: true, state_scope: "session", state_reason: null } as const;

function tool(server: string, name: string, properties: Record<string, unknown> = {}): CalledTool {
  return { server, name, inputSchema: { type: "object", properties } };
}

function openIdentity(token: string | null = "a"): IdentityContext {
  return createIdentityState({ configuration, sessionPresent: true }).open(token);
}

function valueOf(answer: IdentityAnswer): unknown {
  expect(answer).toMatchObject({ ok: true });
  return answer.ok ? answer.value : undefined;
}

function toolErrorOf(answer: IdentityAnswer): unknown {
  expect(answer).toMatchObject({ ok: false });
  if (answer.ok) return undefined;
  expect(toolErrorSchema.safeParse(answer.toolError)).toMatchObject({ success: true });
  return answer.toolError;
}

describe("an identity context", () => {
  it("reports session scope for a context that is kept", () => {
    expect(openIdentity().getSessionState()).toEqual(session);
  });

  it("reports request scope for a single request, and adds a note to every setter", () => {
    const context = createIdentityState({ configuration, sessionPresent: false }).open(null);
    const fields = { session_present: false, state_scope: "request", state_reason: "no_mcp_session" };
    const note = "This lasts for this request only: set it again in each execute block.";
    expect(context.getSessionState()).toEqual(fields);
    expect(valueOf(context.setActiveIdentity("acme-eu"))).toEqual({ identity: "acme-eu", region: null, profile: null, ...fields, note });
    expect(valueOf(context.setRegion("EU"))).toEqual({ identity: "acme-eu", region: "EU", profile: null, ...fields, note });
    expect(valueOf(context.setActiveProfile("test"))).toEqual({ identity: "acme-eu", region: "EU", profile: "test", ...fields, note });
  });

  it("reports when the context cannot be kept between requests", () => {
    const context = createIdentityState({ configuration, sessionPresent: true, bridgeAvailable: false }).open("a");
    expect(context.getSessionState()).toEqual({ session_present: true, state_scope: "request", state_reason: "bridge_unavailable" });
  });

  it("keeps the active names for the next request with the same token", () => {
    const state = createIdentityState({ configuration, sessionPresent: true });
    const first = state.open("a");
    expect(valueOf(first.setActiveIdentity("acme-eu"))).toEqual({ identity: "acme-eu", region: null, profile: null, ...session });
    expect(valueOf(state.open("a").getActiveContext())).toEqual({
      identity: "acme-eu",
      region: null,
      profile: null,
      ...session,
      available: { identities: ["acme-eu", "acme-us"], regions: ["EU", "NA", "FE"], profiles: ["berlin-shop", "test"] },
    });
  });

  it("never shows the values that are sent to backends", () => {
    const context = openIdentity();
    const shown = [context.setActiveIdentity("acme-eu"), context.setActiveProfile("berlin-shop"), context.getActiveContext()];
    expect(JSON.stringify(shown)).not.toMatch(/ENTITY|111|Amazon/);
  });

  it("adds the configured values to calls of the listed servers only", () => {
    const context = openIdentity();
    context.setActiveIdentity("acme-eu");
    context.setRegion("EU");
    context.setActiveProfile("berlin-shop");
    expect(context.toCallExtras(tool("ads", "list_campaigns", { profileId: {} }))).toEqual({
      headers: { "Amazon-Ads-AccountId": "ENTITY-1" },
      meta: { "ads/region": "EU" },
      extraArguments: { profileId: "111" },
    });
    expect(context.toCallExtras(tool("ads", "ping"))).toEqual({
      headers: { "Amazon-Ads-AccountId": "ENTITY-1" },
      meta: { "ads/region": "EU" },
    });
    expect(context.toCallExtras(tool("reports", "get", { profileId: {} }))).toEqual({ meta: { "ads/region": "EU" } });
    expect(context.toCallExtras(tool("weather", "get", { profileId: {} }))).toEqual({});
    expect(openIdentity().toCallExtras(tool("ads", "ping"))).toEqual({});
  });

  it("refuses an unknown name and suggests the closest known one", () => {
    expect(toolErrorOf(openIdentity().setRegion("eu"))).toEqual({
      error_kind: "mcp_input_validation",
      tool: "set_region",
      summary: 'Unknown region "eu".',
      details: [{ path: "region", issue: "is not one of the configured regions", received_type: "string" }],
      hints: ['Did you mean "EU"?', 'The regions are "EU", "NA", "FE".'],
      examples: [{ region: "EU" }],
      error_code: "SCHEMA_ENUM_MISMATCH",
      retryable: false,
      _envelope_version: 1,
    });
  });

  it.each(["__proto__", "constructor", "toString", ""])("does not accept the name %o", (name) => {
    const context = openIdentity();
    for (const set of [context.setActiveIdentity, context.setRegion, context.setActiveProfile]) {
      expect(set(name)).toMatchObject({ ok: false, toolError: { error_code: "SCHEMA_ENUM_MISMATCH" } });
    }
    expect(valueOf(context.getActiveContext())).toMatchObject({ identity: null, region: null, profile: null });
  });

  it("refuses a name that is missing or not a string", () => {
    expect(toolErrorOf(openIdentity().setActiveIdentity(undefined))).toMatchObject({
      error_code: "SCHEMA_REQUIRED",
      details: [{ path: "identity", issue: "is required", received_type: "missing" }],
      examples: [{ identity: "acme-eu" }],
    });
    expect(toolErrorOf(openIdentity().setActiveProfile(7))).toMatchObject({
      error_code: "SCHEMA_TYPE_MISMATCH",
      details: [{ path: "profile", issue: "must be a string", received_type: "number" }],
    });
  });

  it("says that nothing is configured", () => {
    const context = createIdentityState({ configuration: {}, sessionPresent: true }).open("a");
    expect(context.setRegion("EU")).toMatchObject({
      ok: false,
      toolError: {
        hints: ["Call backend tools without a region. An operator can add regions to the configuration, under session.regions.choices."],
      },
    });
  });

  it("allows a profile only for its identities", () => {
    const context = openIdentity();
    expect(toolErrorOf(context.setActiveProfile("berlin-shop"))).toEqual({
      error_kind: "precondition_failed",
      tool: "set_active_profile",
      summary: 'The profile "berlin-shop" belongs to "acme-eu"; the active identity is none.',
      details: [{ path: "profile", issue: "does not belong to the active identity", received_type: "string" }],
      hints: ['Call set_active_identity first, with "acme-eu".', 'The profiles are "test".'],
      examples: [],
      error_code: "ACTIVE_IDENTITY_REQUIRED",
      retryable: false,
      _envelope_version: 1,
    });
    context.setActiveIdentity("acme-us");
    expect(context.setActiveProfile("berlin-shop")).toMatchObject({ ok: false, toolError: { error_code: "SCHEMA_ENUM_MISMATCH" } });
    expect(valueOf(context.setActiveProfile("austin-shop"))).toMatchObject({ profile: "austin-shop" });
    expect(valueOf(context.setActiveIdentity("acme-eu"))).toEqual({
      identity: "acme-eu",
      region: null,
      profile: null,
      ...session,
      note: "The active profile does not belong to this identity and was cleared.",
    });
  });

  it("refuses tools that need an identity while none is active", () => {
    const context = openIdentity();
    expect(context.refusalOf(tool("ads", "list_campaigns"))).toEqual({
      error_kind: "precondition_failed",
      tool: "list_campaigns",
      summary: "list_campaigns needs an active identity, but none is set.",
      details: [],
      hints: [
        "Call set_active_identity first; if state_scope is request, in each execute block.",
        'The identities are "acme-eu", "acme-us".',
      ],
      examples: [{ tool: "set_active_identity", params: { identity: "acme-eu" } }],
      error_code: "ACTIVE_IDENTITY_REQUIRED",
      retryable: false,
      _envelope_version: 1,
    });
    expect(context.refusalOf(tool("billing", "anything"))).toMatchObject({ error_code: "ACTIVE_IDENTITY_REQUIRED" });
    expect(context.refusalOf(tool("ads", "list_regions"))).toBeNull();
    context.setActiveIdentity("acme-eu");
    expect(context.refusalOf(tool("ads", "list_campaigns"))).toBeNull();
  });
});

describe("another bearer token", () => {
  const swapped = { ...session, state_reason: "token_swapped" };
  const list = tool("ads", "list_campaigns", { profileId: {} });

  it("clears the context before any call, and the reason stays until everything is set again", () => {
    const state = createIdentityState({ configuration, sessionPresent: true });
    const first = state.open("a");
    first.setActiveIdentity("acme-eu");
    first.setActiveProfile("berlin-shop");
    const second = state.open("b");
    expect(second.toCallExtras(list)).toEqual({});
    expect(second.getSessionState()).toEqual(swapped);
    expect(second.refusalOf(list)).toMatchObject({ error_code: "ACTIVE_IDENTITY_REQUIRED" });
    expect(valueOf(second.setActiveIdentity("acme-us"))).toEqual({
      identity: "acme-us",
      region: null,
      profile: null,
      ...swapped,
      note: "The bearer token of this session has changed, and everything set before was cleared: call set_active_profile too.",
    });
    expect(valueOf(second.setActiveProfile("austin-shop"))).toEqual({
      identity: "acme-us",
      region: null,
      profile: "austin-shop",
      ...session,
    });
    expect(state.open("b").getSessionState()).toEqual(session);
  });

  it("takes the context away from requests that still run with the previous token", () => {
    const state = createIdentityState({ configuration, sessionPresent: true });
    const first = state.open("a");
    first.setActiveIdentity("acme-eu");
    const second = state.open("b");
    second.setActiveIdentity("acme-us");
    expect(first.toCallExtras(list)).toEqual({});
    expect(first.getSessionState()).toEqual(swapped);
    expect(first.refusalOf(tool("weather", "get"))).toMatchObject({ error_code: "AUTHENTICATION_ERROR" });
    expect(first.setRegion("EU")).toMatchObject({ ok: false, toolError: { error_code: "AUTHENTICATION_ERROR", tool: "set_region" } });
    expect(valueOf(second.getActiveContext())).toMatchObject({ identity: "acme-us", region: null });
  });

  it("is reported until the first setter if nothing had been set", () => {
    const state = createIdentityState({ configuration, sessionPresent: true });
    state.open("a");
    const second = state.open("b");
    expect(second.getSessionState()).toEqual(swapped);
    expect(valueOf(second.setRegion("NA"))).toEqual({ identity: null, region: "NA", profile: null, ...session });
  });

  it("does not restore the context when the first token returns", () => {
    const state = createIdentityState({ configuration, sessionPresent: true });
    state.open("a").setActiveIdentity("acme-eu");
    state.open("b");
    const again = state.open("a");
    expect(again.toCallExtras(list)).toEqual({});
    expect(again.getSessionState()).toEqual(swapped);
  });
});

describe("the identity tools", () => {
  it("are five, and none needs approval", () => {
    expect(identityTools.map(({ name, annotations: { readOnlyHint, destructiveHint } }) => [name, readOnlyHint, destructiveHint])).toEqual([
      ["get_session_state", true, false],
      ["set_active_identity", undefined, false],
      ["set_region", undefined, false],
      ["set_active_profile", undefined, false],
      ["get_active_context", true, false],
    ]);
  });

  it("act on the context of the request that calls them", async () => {
    const context = openIdentity();
    const run = async (name: string, args: Record<string, unknown> = {}): Promise<unknown> =>
      JSON.parse((await identityTools.find((one) => one.name === name)!.run(args, { identity: context })).text);
    expect(await run("get_session_state")).toEqual(session);
    expect(await run("set_active_identity", { identity: "acme-eu" })).toMatchObject({ identity: "acme-eu" });
    expect(await run("set_region", { region: "EU" })).toMatchObject({ region: "EU" });
    expect(await run("set_active_profile", { profile: "berlin-shop" })).toMatchObject({ profile: "berlin-shop" });
    expect(await run("get_active_context")).toMatchObject({ identity: "acme-eu", region: "EU", profile: "berlin-shop" });
  });
});
