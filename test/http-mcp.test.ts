import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { prune } from "../src/server/http/prune.ts";
import { openTestServer, shortScript, type TestServer } from "./fixtures/open-test-server.ts";

const tokens = { ann: "token-of-ann-token-of-ann-token-of-ann", bob: "token-of-bob-token-of-bob-token-of-bob" };

/** Authentication and limits of `/mcp`. The MCP server itself has its own tests. */
describe("/mcp", { timeout: 240_000 }, () => {
  let open: TestServer;
  beforeAll(async () => {
    const entries = Object.entries(tokens).map(([tenant, token]) => ({ tenant, sha256: createHash("sha256").update(token).digest("hex") }));
    open = await openTestServer({ script: shortScript, configuration: { auth: { tokens: entries } }, token: tokens.ann });
  });
  afterAll(() => open[Symbol.asyncDispose]());

  async function connect(token: string, protocol: "2026-07-28" | "legacy"): Promise<Client> {
    const pinned = protocol === "legacy" ? ("legacy" as const) : { pin: protocol };
    const client = new Client({ name: "test", version: "0" }, { versionNegotiation: { mode: pinned } });
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", open.url), { requestInit }));
    return client;
  }

  test.each(["2026-07-28", "legacy"] as const)(
    "serves a client of protocol %s with a token, and computes with data that it stored",
    async (protocol) => {
      const client = await connect(tokens.ann, protocol);
      try {
        const { tools } = await client.listTools();
        expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(["code_interpreter", "store_data", "list_data", "read_data"]));
        const stored = await client.callTool({ name: "store_data", arguments: { name: "numbers", data: [1, 2, 3] } });
        const { session } = stored.structuredContent as { session?: string };
        const code = "set_result(sum(numbers))";
        const postProcessingContract = { operation: "aggregate", reason: "The sum.", inputAliases: ["numbers"], expectedArtifacts: [] };
        const answer = await client.callTool({
          name: "code_interpreter",
          arguments: { code, postProcessingContract, ...(protocol === "legacy" ? {} : { session }) },
        });
        expect([answer.isError ?? false, JSON.stringify(answer.content)]).toEqual([false, expect.stringContaining("6")]);
        if (protocol === "legacy") return;
        const other = await connect(tokens.bob, protocol);
        const stolen = await other.callTool({ name: "code_interpreter", arguments: { code, postProcessingContract, session } });
        expect(stolen.isError).toBe(true);
        await other.close();
      } finally {
        await client.close();
      }
    },
  );

  const computing = (code: string, expectedArtifacts: string[] = []) => {
    const postProcessingContract = { operation: "derive_metric", reason: "For a test.", inputAliases: ["numbers"], expectedArtifacts };
    return { name: "code_interpreter", arguments: { code, postProcessingContract } };
  };
  const mcpHeaders = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const post = (message: object, { headers = {}, ...options }: { headers?: object; signal?: AbortSignal; token?: string } = {}) =>
    open.request("/mcp", { method: "POST", headers: { ...mcpHeaders, ...headers }, body: JSON.stringify(message), ...options });

  test("lets a client of the 2025 protocol versions listen on its own connection only", async () => {
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "0" } };
    const begun = await post({ jsonrpc: "2.0", id: 1, method: "initialize", params });
    const session = { "mcp-session-id": begun.headers.get("mcp-session-id")!, "mcp-protocol-version": "2025-11-25" };
    await begun.text();
    const headers = { accept: "text/event-stream", ...session };
    const gone = new AbortController();
    const listening = await open.request("/mcp", { headers, signal: gone.signal });
    expect([listening.status, listening.headers.get("content-type"), listening.headers.get("x-content-type-options")]).toEqual([
      200,
      "text/event-stream",
      "nosniff",
    ]);
    gone.abort();
    expect((await open.request("/mcp", { headers, token: tokens.bob })).status).toBe(404);
    expect((await open.request("/mcp", { headers: { accept: "text/event-stream" } })).status).toBe(400);
    expect((await open.request("/mcp", { method: "DELETE", headers: session })).status).toBe(200);
    expect((await open.request("/mcp", { headers })).status).toBe(404);
  });

  test("answers 429 with a time to retry when a client has too many calls, and still serves others", async () => {
    const [ann, bob] = [await connect(tokens.ann, "legacy"), await connect(tokens.bob, "legacy")];
    await ann.callTool({ name: "store_data", arguments: { name: "numbers", data: [1, 2, 3] } });
    const begun = (): number => open.server.parts.metrics.requests.values()["/mcp,POST,200"] ?? 0;
    const before = begun();
    const held = Array.from({ length: 64 }, () => ann.callTool(computing("while True: pass")).catch((error: unknown) => error));
    await expect.poll(begun, { timeout: 60_000 }).toBe(before + 64);
    const refused = await post({ jsonrpc: "2.0", id: 2, method: "tools/list" });
    expect([refused.status, refused.headers.get("retry-after"), await refused.json()]).toEqual([
      429,
      "2",
      {
        error: {
          code: "TOO_MANY_CALLS",
          message: "This client already has 64 running calls.",
          hint: "Wait until one of them has finished.",
        },
      },
    ]);
    expect((await bob.listTools()).tools.length).toBeGreaterThan(5);
    await ann.close(); // also ends its calls
    await Promise.all(held);
    await expect.poll(async () => (await post({ jsonrpc: "2.0", id: 2, method: "ping" })).status, { timeout: 60_000 }).not.toBe(429);
    await bob.close();
  });

  test("refuses messages larger than 32 MB", async () => {
    const data = "x".repeat(33 * 1024 * 1024);
    const refused = await post({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "store_data", arguments: { name: "big", data } },
    });
    expect(refused.status).toBe(413);
  });

  test.each([
    { what: "arrays in arrays", data: `${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}`, why: "It is nested more than 256 levels deep." },
    { what: "millions of objects", data: `[${"{},".repeat(3_000_000)}1]`, why: "It has more than 1,000,000 objects and arrays." },
  ])("refuses messages that would take long to parse, before it parses them: $what", async ({ data, why }) => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"store_data","arguments":{"name":"slow","data":${data}}}}`;
    const refused = await open.request("/mcp", { method: "POST", headers: mcpHeaders, body });
    const error = { code: "REQUEST_INVALID", message: `The body takes too long to parse. ${why}`, hint: expect.stringContaining("/files") };
    expect([refused.status, await refused.json()]).toEqual([400, { error }]);
  });

  test("prunes artifacts of MCP clients", async () => {
    const client = await connect(tokens.ann, "legacy");
    await client.callTool({ name: "store_data", arguments: { name: "numbers", data: [1, 2, 3] } });
    const code = "plt.plot(numbers)\nsave_figure('A line of three points that goes up', title='Up')\nset_result(1)";
    const answer = await client.callTool(computing(code, ["image"]));
    const { contentHash, url } = (answer.structuredContent as { artifacts: { contentHash: string; url: string }[] }).artifacts[0]!;
    expect(url).toBe(`sluice://artifacts/${contentHash}`);
    const picture = answer.content.find(({ type }) => type === "image");
    const { figureData } = picture!._meta as { figureData: { bytes: number } };
    const image = (): Promise<Response> => open.request(`/artifacts/${contentHash}.png`);
    const bytes = (await (await image()).arrayBuffer()).byteLength + figureData.bytes;
    const { history, storesOf, configured } = open.server.parts;
    const { directory } = configured.configuration.artifacts;
    const retention = { days: 30, maxBytes: 1024 ** 3 };
    const prunedAfter = (days: number) => prune({ directory, history, storesOf, retention, now: new Date(Date.now() + days * 86_400_000) });
    expect(await prunedAfter(29)).toEqual([{ tenant: "ann", expired: 0, overQuota: 0, orphans: 0, bytesBefore: bytes, bytesAfter: bytes }]);
    expect(await prunedAfter(31)).toEqual([{ tenant: "ann", expired: 2, overQuota: 0, orphans: 0, bytesBefore: bytes, bytesAfter: 0 }]);
    expect((await image()).status).toBe(404);
    await expect(client.readResource({ uri: url })).rejects.toThrow("not found");
    await client.close();
  });

  test("refuses requests without a token and requests from other pages", async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    expect((await open.request("/mcp", { method: "POST", headers, body, token: null })).status).toBe(401);
    const foreign = await open.request("/mcp", { method: "POST", headers: { ...headers, origin: "https://evil.example" }, body });
    expect(foreign.status).toBe(403);
  });
});
