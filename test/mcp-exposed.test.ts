import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { parseToolError } from "../src/errors/tool-error.ts";
import { cell, generations, openHttpClient, textOf, type TestClient } from "./fixtures/mcp-clients.ts";
import { openMcpEndpoint, type TestEndpoint } from "./fixtures/open-mcp-endpoint.ts";

const HANG_MS = 180_000;
const root = path.resolve(import.meta.dirname, "..");
const entry = (file: string, more: object): object => ({ command: process.execPath, args: [path.join(root, file)], ...more });

const configuration = {
  mcpServers: {
    market: entry("examples/backends/market/market-server.ts", { expose: true }),
    fixture: entry("src/tools/mcp/fixtures/sdk-server.ts", { expose: true, allow: ["slow", "about", "fail", "cancelled"] }),
    hidden: entry("examples/backends/market/market-server.ts", {}),
    down: { command: path.join(root, "no-such-program"), expose: true },
  },
  session: {
    identities: { choices: { acme: { value: "ENTITY-1" } } },
    regions: { choices: { eu: { value: "EUROPE" } }, rides: [{ as: "meta", name: "test/region", servers: ["fixture"] }] },
    identityRequired: ["fixture__about"],
  },
};

describe("tools of exposed backend servers over MCP", { timeout: HANG_MS }, () => {
  let opened: TestEndpoint;
  beforeAll(async () => {
    opened = await openMcpEndpoint({ configuration });
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  /** Returns the arguments that keep a client of either version on one connection. */
  async function openHandle(client: TestClient): Promise<Record<string, unknown>> {
    const { session } = textOf(await client.call("store_data", { name: "note", data: "here" }));
    return session === undefined ? {} : { session };
  }

  test.each(generations)("lists the tools of exposed servers to a client of %s with their own descriptions", async (generation) => {
    await using client = await openHttpClient(generation, opened.url);
    const tools = await client.tools();
    const names = tools.map(({ name }) => name);
    expect(names).toContain("echo");
    expect(names).toContain("market__get_prices");
    expect(names).not.toContain("hidden__get_prices");
    const echo = tools.find(({ name }) => name === "echo");
    expect(echo).toMatchObject({ title: "Echo", description: "Returns its arguments.", annotations: { readOnlyHint: true } });
    expect(echo?.inputSchema).toMatchObject({ properties: { text: { type: "string" } } });
    const routed = tools.find(({ name }) => name === "routed");
    expect(JSON.stringify(routed?.inputSchema)).not.toContain("x-mcp-header");
  });

  test("resolves the tool of a call once", async () => {
    await using client = await openHttpClient("2025-11-25", opened.url);
    const resolve = vi.spyOn(opened.configured.catalog, "resolve");
    expect(textOf(await client.call("echo", { text: "A" }))).toMatchObject({ status: "ok" });
    expect(resolve).toHaveBeenCalledTimes(1);
    resolve.mockRestore();
  });

  test.each(generations)(
    "keeps the complete output of a tool under an alias and returns a preview and a link to a client of %s",
    async (generation) => {
      await using client = await openHttpClient(generation, opened.url);
      const handle = await openHandle(client);
      const result = await client.call("market__get_prices", { asset: "BTC", ...handle });
      const { status, aliases, previews } = textOf(result) as { status: string; aliases: string[]; previews: object[] };
      expect([status, aliases]).toEqual(["ok", ["get_prices_1", "get_prices_1_text"]]);
      expect(previews[0]).toMatchObject({ alias: "get_prices_1" });
      const link = result.content.find((block) => block.type === "resource_link");
      expect(link?.uri).toMatch(/^sluice:\/\/(?:sessions\/[\w-]{24}\/)?data\/get_prices_1$/);
      const [page] = (await client.read(link?.uri ?? "")).contents;
      expect(JSON.parse(page !== undefined && "text" in page ? page.text : "")).toMatchObject({ alias: "get_prices_1", offset: 0 });
      const counted = await client.call("code_interpreter", {
        ...cell("set_result(len(to_frame(get_prices_1)))", aliases),
        ...handle,
      });
      const { result: rows } = textOf(counted) as { result: number };
      expect(rows).toBeGreaterThan(300);
    },
  );

  test.each(generations)("returns the tool error of a failed call to a client of %s", async (generation) => {
    await using client = await openHttpClient(generation, opened.url);
    const failures = [
      [await client.call("fail"), "TOOL_EXECUTION_ERROR"],
      [await client.call("market__get_prices", { asset: 7 }), "INPUT_VALIDATION_FAILED"],
      [await client.call("down__anything"), "UPSTREAM_UNREACHABLE"],
      [await client.call("hidden__get_prices", { asset: "BTC" }), "TOOL_NOT_FOUND"],
    ] as const;
    expect(failures.map(([result]) => result.isError)).toEqual([true, true, true, true]);
    expect(failures.map(([result]) => parseToolError(textOf(result)["error"])?.error_code)).toEqual(failures.map(([, code]) => code));
  });

  test.each(generations)("forwards the progress of a tool to a client of %s", async (generation) => {
    await using client = await openHttpClient(generation, opened.url);
    const messages: (string | undefined)[] = [];
    await client.call("slow", { steps: 3, stepMs: 300 }, { onprogress: ({ message }) => messages.push(message) });
    expect(messages.filter((message) => /^step \d$/.test(message ?? "")).length).toBeGreaterThan(0);
  });

  test.each(generations)("cancels the backend call when a client of %s cancels its own", async (generation) => {
    await using client = await openHttpClient(generation, opened.url);
    const cancelled = async (): Promise<unknown> => {
      const { previews } = textOf<{ previews: { value: { cancelled: number } }[] }>(await client.call("cancelled"));
      return previews[0]?.value.cancelled;
    };
    const before = await cancelled();
    const stop = new AbortController();
    const running = client.call(
      "slow",
      { steps: 100_000, stepMs: 20 },
      {
        signal: stop.signal,
        onprogress: ({ message }) => message?.startsWith("step") === true && stop.abort(new Error("enough")),
      },
    );
    await expect(running).rejects.toThrow("enough");
    while ((await cancelled()) === before) await sleep(50);
    expect(await cancelled()).toBe(Number(before) + 1);
  });

  test.each(generations)("lets scripts of a client of %s call all servers, also ones that are not exposed", async (generation) => {
    await using client = await openHttpClient(generation, opened.url);
    const handle = await openHandle(client);
    expect(textOf(await client.call("search", { query: "prices", ...handle }))).toMatchObject({
      tools: { length: expect.any(Number) as number },
    });
    expect(textOf(await client.call("tags", handle))).toHaveProperty("tags");
    const schema = await client.call("get_schema", { tools: "hidden__get_prices", ...handle });
    expect(textOf(schema)).toMatchObject({ tools: [{ name: "hidden__get_prices" }] });
    const code = "rows = await call_tool('hidden__list_venues', {})\nreturn len(rows) > 0";
    const ran = await client.call("execute", { code, ...handle });
    expect(textOf(ran)).toMatchObject({ status: "ok", result: true, aliases: [{ alias: "list_venues_1" }], toolCalls: 1 });
    expect(ran.structuredContent).toEqual(textOf(ran));
    const failed = await client.call("execute", { code: "return 1 / 0", ...handle });
    expect([failed.isError, parseToolError(textOf(failed)["error"])?.error_code]).toEqual([true, "SANDBOX_RUNTIME_ERROR"]);
    expect(textOf(await client.call("get_envelope_contract", handle))).toMatchObject({ contract_version: 1 });
  });

  test.each(generations)("keeps the identity and region of a client of %s on its own connection", async (generation) => {
    await using client = await openHttpClient(generation, opened.url, { "x-token": "a" });
    const handle = await openHandle(client);
    const fields = { session_present: true, state_scope: "session", state_reason: null };
    expect(textOf(await client.call("get_session_state", handle))).toMatchObject(fields);
    const refused = await client.call("about", handle);
    expect(parseToolError(textOf(refused)["error"])?.error_code).toBe("ACTIVE_IDENTITY_REQUIRED");
    expect(textOf(await client.call("set_active_identity", { identity: "acme", ...handle }))).toMatchObject({
      identity: "acme",
      ...fields,
    });
    await client.call("set_region", { region: "eu", ...handle });
    expect(textOf(await client.call("get_active_context", handle))).toMatchObject({ identity: "acme", region: "eu", ...fields });
    expect((await client.call("about", handle)).isError).toBeUndefined();
    const echoed = textOf(await client.call("echo", handle));
    expect(JSON.stringify(echoed)).toContain('"test/region":"EUROPE"');

    await using other = await openHttpClient(generation, opened.url, { "x-token": "b" });
    const alone = textOf(await other.call("get_active_context"));
    expect(alone).toMatchObject({ identity: null, region: null });
    if (generation === "2026-07-28") {
      expect(alone).toMatchObject({ session_present: false, state_scope: "request", state_reason: "no_mcp_session" });
      const swapped = textOf(await other.call("get_active_context", handle));
      expect(swapped).toMatchObject({
        identity: null,
        region: null,
        session_present: true,
        state_scope: "session",
        state_reason: "token_swapped",
      });
    }
  });
});
