import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, shortScript, type TestServer } from "./fixtures/open-test-server.ts";

const tokens = { ann: "token-of-ann-token-of-ann-token-of-ann", bob: "token-of-bob-token-of-bob-token-of-bob" };

/** `/mcp` behind the server's own door; what is behind it has tests of its own. */
describe("/mcp of the server", { timeout: 240_000 }, () => {
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
    "serves a client of %s with the token, and computes with what it stored",
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

  test("turns away who has no token, and a page of somebody else's", async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    expect((await open.request("/mcp", { method: "POST", headers, body, token: null })).status).toBe(401);
    const foreign = await open.request("/mcp", { method: "POST", headers: { ...headers, origin: "https://evil.example" }, body });
    expect(foreign.status).toBe(403);
  });
});
