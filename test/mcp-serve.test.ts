import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cell, generations, openHttpClient, textOf } from "./fixtures/mcp-clients.ts";
import { openTestServer, type TestServer } from "./fixtures/open-test-server.ts";

const HANG_MS = 180_000;

/** `/mcp` of `sluice serve`, behind its door: the tenants are those of its tokens. */
describe.each(generations)("/mcp of the server, with clients of %s", { timeout: HANG_MS }, (generation) => {
  const tokens = ["acme", "globex"].map((tenant) => ({ tenant, sha256: createHash("sha256").update(`token-of-${tenant}`).digest("hex") }));
  const bearer = (tenant: string): Record<string, string> => ({ Authorization: `Bearer token-of-${tenant}` });
  let opened: TestServer;
  beforeAll(async () => {
    opened = await openTestServer({ configuration: { auth: { tokens } }, token: "token-of-acme" });
  }, HANG_MS);
  afterAll(() => opened[Symbol.asyncDispose]());

  test("computes and draws for a tenant, and shows it to no other", async () => {
    const url = `${opened.url}/mcp`;
    await using one = await openHttpClient(generation, url, bearer("acme"));
    await using other = await openHttpClient(generation, url, bearer("globex"));
    const { session } = textOf<{ session?: string }>(await one.call("store_data", { name: "rows", data: [{ n: 1 }, { n: 2 }] }));
    const handle = session === undefined ? {} : { session };
    const code = "plt.plot([1, 2])\nsave_figure('A short line that rises')\nset_result(len(rows))";
    const result = await one.call("code_interpreter", { ...cell(code, ["rows"], ["image"]), ...handle });
    expect(textOf(result)).toMatchObject({ status: "ok", result: 2, artifacts: [{ kind: "image" }] });
    const picture = result.content.find((block) => block.type === "image")?._meta?.["url"] as string;
    expect((await one.read(picture)).contents).toHaveLength(1);
    await expect(other.read(picture)).rejects.toThrow(picture);
    const seen = textOf(await other.call("list_data", handle));
    expect(session === undefined ? seen["data"] : seen["status"]).toEqual(session === undefined ? [] : "refused");
  });

  test("lets nobody in without a token", async () => {
    await expect(openHttpClient(generation, `${opened.url}/mcp`)).rejects.toThrow(/401|Unauthorized/i);
    await expect(openHttpClient(generation, `${opened.url}/mcp`, { Authorization: "Bearer guessed" })).rejects.toThrow(/401|Unauthorized/i);
  });
});
