import { describe, expect, it } from "vitest";
import { createEvidenceStore } from "../../evidence/create-evidence-store.ts";
import { openHttpFixture, openSource, readAnswerText } from "./fixtures/open-fixture.ts";

/** Generous, for a busy machine. */
const patience = { timeout: 30_000 };

describe("an HTTP server of the current protocol version", () => {
  it("gets the headers of its entry and of the call, and of no other call", async () => {
    await using server = await openHttpFixture("sdk-server", "--http", "0");
    await using fixture = openSource({ server: { url: server.url, headers: { Authorization: "Bearer of-the-entry", "X-Fixed": "1" } } });
    const echo = await fixture.tool("echo");
    const identities = ["a", "b", null, "c"];
    const answers = await Promise.all(
      identities.map(async (identity) => {
        const headers: Record<string, string> =
          identity === null ? {} : { authorization: `Bearer ${identity}`, "x-identity": identity, "mcp-method": "forged", host: "forged" };
        return readAnswerText<{ headers: Record<string, string> }>(await echo.call({}, { headers })).headers;
      }),
    );
    expect(
      answers.map(({ authorization, "x-identity": identity, "x-fixed": fixed, "mcp-method": method }) => [
        authorization,
        identity,
        fixed,
        method,
      ]),
    ).toEqual([
      ["Bearer a", "a", "1", "tools/call"],
      ["Bearer b", "b", "1", "tools/call"],
      ["Bearer of-the-entry", undefined, "1", "tools/call"],
      ["Bearer c", "c", "1", "tools/call"],
    ]);
    expect(readAnswerText(await fixture.call("about"))).toMatchObject({ era: "modern" });
  });

  it("gets arguments as headers where its schema marks them", async () => {
    await using server = await openHttpFixture("sdk-server", "--http", "0");
    await using fixture = openSource({ server: { url: server.url } });
    expect(readAnswerText(await fixture.call("routed", { region: "eu" }))).toEqual({ region: "eu" });
    expect(readAnswerText(await fixture.call("routed", { region: "Österreich" }))).toEqual({ region: "=?base64?w5ZzdGVycmVpY2g=?=" });
  });

  it("reports progress and is notified when a call is cancelled or times out", async () => {
    await using server = await openHttpFixture("sdk-server", "--http", "0");
    await using fixture = openSource({ server: { url: server.url }, timeoutMs: 2_000 });
    const reported: number[] = [];
    await fixture.call("slow", { steps: 5, stepMs: 500 }, { onProgress: ({ progress }) => reported.push(progress) });
    expect(reported.slice(0, 3)).toEqual([1, 2, 3]);
    const abort = new AbortController();
    const onProgress = () => abort.abort(new Error("enough"));
    await expect(fixture.call("slow", { steps: 1_000, stepMs: 20 }, { signal: abort.signal, onProgress })).rejects.toThrow("enough");
    await expect.poll(async () => readAnswerText(await fixture.call("cancelled")), patience).toEqual({ cancelled: 1 });
    await expect(fixture.call("slow", { steps: 1, stepMs: 60_000 })).rejects.toMatchObject({ code: "MCP_TIMEOUT" });
    await expect.poll(async () => readAnswerText(await fixture.call("cancelled")), patience).toEqual({ cancelled: 2 });
  });

  it("is listed again after its tools have changed", async () => {
    await using server = await openHttpFixture("sdk-server", "--http", "0");
    await using fixture = openSource({ server: { url: server.url } });
    const before = (await fixture.source.tools()).tools.length;
    await fixture.call("grow", { tools: 30 });
    await expect.poll(async () => (await fixture.source.tools()).tools.length, patience).toBe(before + 30);
  });

  it.each([[[]], [["--sse"]]])("can list its tools in a message of 1 MB (%j)", async (flags) => {
    await using server = await openHttpFixture("sdk-server", "--http", "0", ...flags);
    await using first = openSource({ server: { url: server.url } });
    await first.call("grow", { tools: 100, characters: 10_000 });
    await using second = openSource({ server: { url: server.url } });
    const { tools, gap } = await second.source.tools();
    expect([gap, tools.at(-1)]).toMatchObject([null, { name: "extra_100", description: "x".repeat(10_000) }]);
  });

  it.each([[[]], [["--sse"]]])("can answer with 100 MB (%j)", { timeout: 180_000 }, async (flags) => {
    await using server = await openHttpFixture("sdk-server", "--http", "0", ...flags);
    await using fixture = openSource({ server: { url: server.url } });
    const answer = await fixture.call("big", { megabytes: 100 });
    expect(answer.output).toMatchObject({ content: [] });
    const item = createEvidenceStore().add({ tool: "big", ...answer });
    const texts = JSON.parse(Buffer.from(item.read()).toString("utf8")) as string[];
    expect([item.bytes, item.shape.rows, texts.reduce((sum, text) => sum + text.length, 0)]).toEqual([100_000_301, 100, 100_000_000]);
  });

  it("cannot answer with more than is allowed", async () => {
    await using server = await openHttpFixture("sdk-server", "--http", "0");
    await using fixture = openSource({ server: { url: server.url }, maxMessageBytes: 1_500_000 });
    await expect(fixture.call("big", { megabytes: 2 })).rejects.toMatchObject({
      code: "MCP_CONNECTION_LOST",
      message: 'The connection to the server "fixture" was closed because a message is longer than 1500000 bytes.',
    });
    const item = createEvidenceStore().add({ tool: "big", ...(await fixture.call("big", { megabytes: 1 })) });
    expect([item.format, item.bytes]).toEqual(["text", 1_000_000]);
  });

  it("can stop during a call: that call fails, and later calls work once it is back", async () => {
    const clock = { time: 0, now: () => clock.time };
    const first = await openHttpFixture("sdk-server", "--http", "0");
    const { port } = new URL(first.url);
    await using fixture = openSource({ server: { url: first.url }, clock });
    const [slow, about] = [await fixture.tool("slow"), await fixture.tool("about")];
    let killed: Promise<void> | undefined;
    const inFlight = slow.call({ steps: 1_000, stepMs: 20 }, { onProgress: () => void (killed ??= first.kill()) });
    await expect(inFlight).rejects.toMatchObject({
      code: "MCP_CONNECTION_LOST",
      message: expect.stringMatching(/^The connection to the server "fixture" was lost during the call( \(\w+\))?\.$/) as string,
    });
    await killed; // until it has exited, the kernel may accept a connection and reset it
    const gap = { server: "fixture", reason: `Nothing listens at ${first.url} (connection refused).` };
    expect(await fixture.source.tools()).toEqual({ tools: [], gap });
    await expect(about.call({}, {})).rejects.toMatchObject({
      code: "MCP_UNREACHABLE",
      message: gap.reason,
      systemCode: "ECONNREFUSED",
      retryAfter: 1,
    });
    await using _second = await openHttpFixture("sdk-server", "--http", port);
    expect(await fixture.source.tools()).toEqual({ tools: [], gap });
    clock.time = 1_000;
    expect((await fixture.source.tools()).gap).toBeNull();
    expect(readAnswerText(await about.call({}, {}))).toMatchObject({ era: "modern" });
  });
});

describe("an HTTP server of an older protocol version", () => {
  it("gets a new Mcp-Session-Id when the server has forgotten the old one, and ends it with the source", async () => {
    await using server = await openHttpFixture("old-http-server");
    const first = openSource({ server: { url: server.url } });
    expect(readAnswerText(await first.call("about"))).toMatchObject({ initialize: 1, delete: 0 });
    await first.call("forget");
    expect(readAnswerText(await first.call("about"))).toMatchObject({ initialize: 2, delete: 0 });
    await first.source[Symbol.asyncDispose]();
    await using second = openSource({ server: { url: server.url } });
    expect(readAnswerText(await second.call("about"))).toMatchObject({ initialize: 3, delete: 1 });
  });

  it("gets the headers of a call", async () => {
    await using server = await openHttpFixture("old-http-server");
    await using fixture = openSource({ server: { url: server.url, headers: { authorization: "Bearer entry" } } });
    const headers = { Authorization: "Bearer call", "X-Tenant": "acme" };
    expect(readAnswerText(await fixture.call("about", {}, { headers }))).toMatchObject({ authorization: "Bearer call", tenant: "acme" });
    expect(readAnswerText(await fixture.call("about"))).toMatchObject({ authorization: "Bearer entry", tenant: null });
  });

  it("can refuse a call with an HTTP status, which the error keeps with Retry-After", async () => {
    await using server = await openHttpFixture("old-http-server");
    await using fixture = openSource({ server: { url: server.url } });
    await expect(fixture.call("refuse")).rejects.toMatchObject({
      code: "MCP_HTTP_STATUS",
      message: 'The server "fixture" answered with HTTP 503: overloaded',
      status: 503,
      retryAfter: undefined,
    });
    await expect(fixture.call("busy")).rejects.toMatchObject({
      code: "MCP_HTTP_STATUS",
      message: 'The server "fixture" answered with HTTP 429: slow down',
      status: 429,
      retryAfter: 7,
    });
    expect(readAnswerText(await fixture.call("about"))).toMatchObject({ initialize: 1 });
  });

  it("can close a stream early: the call fails immediately", async () => {
    await using server = await openHttpFixture("old-http-server");
    await using fixture = openSource({ server: { url: server.url } });
    await expect(fixture.call("cut")).rejects.toMatchObject({
      code: "MCP_CONNECTION_LOST",
      message: 'The connection to the server "fixture" was lost during the call.',
    });
    expect((await fixture.source.tools()).gap).toBeNull();
  });

  it("answers in a stream whose numbers stay exact", async () => {
    await using server = await openHttpFixture("old-http-server");
    await using fixture = openSource({ server: { url: server.url } });
    expect((await fixture.call("exact")).structuredJson).toBe('{"id":9007199254740993}');
  });
});
