import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cell, generations, openHttpClient, textOf } from "./fixtures/mcp-clients.ts";
import { openTestServer, type TestServer } from "./fixtures/open-test-server.ts";

const HANG_MS = 180_000;

/** `/mcp` of `sluice serve`: the bearer token decides the tenant. */
describe.each(generations)("/mcp of the server, with clients of %s", { timeout: HANG_MS }, (generation) => {
  const tokens = ["acme", "globex"].map((tenant) => ({ tenant, sha256: createHash("sha256").update(`token-of-${tenant}`).digest("hex") }));
  const bearer = (tenant: string): Record<string, string> => ({ Authorization: `Bearer token-of-${tenant}` });
  let opened: TestServer;
  beforeAll(async () => {
    opened = await openTestServer({ configuration: { auth: { tokens } }, token: "token-of-acme" });
  }, HANG_MS);
  afterAll(() => opened[Symbol.asyncDispose]());

  test("computes and draws for one tenant and hides the results from others", async () => {
    const url = `${opened.url}/mcp`;
    await using one = await openHttpClient(generation, url, bearer("acme"));
    await using other = await openHttpClient(generation, url, bearer("globex"));
    const { session } = textOf<{ session?: string }>(await one.call("store_data", { name: "rows", data: [{ n: 1 }, { n: 2 }] }));
    const handle = session === undefined ? {} : { session };
    const code = "plt.plot([1, 2])\nsave_figure('A short line that rises')\nset_result(len(rows))";
    const result = await one.call("code_interpreter", { ...cell(code, ["rows"], ["image"]), ...handle });
    expect(textOf(result)).toMatchObject({ status: "ok", result: 2, artifacts: [{ kind: "image" }] });
    const image = result.content.find((block) => block.type === "image")?._meta?.["url"] as string;
    expect((await one.read(image)).contents).toHaveLength(1);
    await expect(other.read(image)).rejects.toThrow(image);
    const listed = textOf(await other.call("list_data", handle));
    expect(session === undefined ? listed["data"] : listed["status"]).toEqual(session === undefined ? [] : "refused");
  });

  test("refuses requests without a valid token", async () => {
    await expect(openHttpClient(generation, `${opened.url}/mcp`)).rejects.toThrow(/401|Unauthorized/i);
    await expect(openHttpClient(generation, `${opened.url}/mcp`, { Authorization: "Bearer guessed" })).rejects.toThrow(/401|Unauthorized/i);
  });
});
