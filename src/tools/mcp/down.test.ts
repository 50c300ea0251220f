import { describe, expect, it } from "vitest";
import type { McpServerEntry } from "./mcp-source-options.ts";
import { fixtureEntry, openHttpFixture, openSource } from "./fixtures/open-fixture.ts";

async function reasonOf(server: McpServerEntry, connectTimeoutMs = 30_000): Promise<string | undefined> {
  await using fixture = openSource({ server, connectTimeoutMs });
  const { tools, gap } = await fixture.source.tools();
  expect(tools).toEqual([]);
  expect(gap?.server).toBe("fixture");
  return gap?.reason;
}

describe("the gap of a server that is down says why:", () => {
  it("the program does not exist", async () => {
    expect(await reasonOf({ command: "no-such-program-anywhere" })).toBe('The program "no-such-program-anywhere" was not found.');
  });

  it("the program or the directory does not exist", async () => {
    expect(await reasonOf({ command: process.execPath, cwd: "/no/such/directory" })).toBe(
      `The program ${JSON.stringify(process.execPath)} or the directory "/no/such/directory" was not found.`,
    );
  });

  it("the program is not executable", async () => {
    expect(await reasonOf({ command: import.meta.filename })).toBe(
      `The program ${JSON.stringify(import.meta.filename)} is not executable.`,
    );
  });

  it("the server exits: shows its last lines on stderr and hides the secrets of its entry", async () => {
    const server = { ...fixtureEntry("old-server", "--exit"), env: { SECRET_KEY: "hunter2-hunter2" } };
    expect(await reasonOf(server)).toBe(
      "The server's process exited with code 3 before it was ready. Its last lines on stderr: first line | the key is [hidden]",
    );
  });

  it("the server does not answer", async () => {
    expect(await reasonOf(fixtureEntry("old-server", "--silent"), 1_000)).toBe("The server did not answer within 1 s.");
  });

  it("the server prints text that is not MCP", async () => {
    const server = { command: "/bin/sh", args: ["-c", "echo hello there; sleep 60"] };
    expect(await reasonOf(server, 3_000)).toBe("The server did not answer within 3 s. It printed text that is not MCP: hello there");
  });

  it("nothing listens at the URL", async () => {
    const server = await openHttpFixture("old-http-server");
    await server.kill();
    expect(await reasonOf({ url: `${server.url}?key=s3cret` })).toBe(`Nothing listens at ${server.url} (connection refused).`);
  });

  it("the host does not exist", async () => {
    expect(await reasonOf({ url: "http://no-such-host.invalid/mcp" })).toBe("The host no-such-host.invalid was not found.");
  });

  it("the server requires authorization", async () => {
    await using server = await openHttpFixture("old-http-server");
    expect(await reasonOf({ url: `${server.url}?locked` })).toBe(
      "The server requires authorization (HTTP 401). Set its headers in the configuration.",
    );
    await using fixture = openSource({ server: { url: `${server.url}?locked`, headers: { authorization: "Bearer right-token" } } });
    expect((await fixture.source.tools()).gap).toBeNull();
  });

  it("the server is not an MCP server", async () => {
    await using server = await openHttpFixture("old-http-server");
    expect(await reasonOf({ url: `${server.url}?page` })).toBe(
      `The server at ${server.url} does not speak MCP: Unexpected content type: text/html`,
    );
    expect(await reasonOf({ url: `${server.url}?status=500` })).toBe("The server answered with HTTP 500.");
    expect(await reasonOf({ url: `${server.url}?status=404` })).toBe("The server answered with HTTP 404.");
  });
});

describe("rejects an invalid entry before anything starts:", () => {
  it.each([
    [{ url: "not a url" }, 'The url of the server "fixture" is not a URL: not a url'],
    [{ url: "file:///etc/passwd" }, 'The url of the server "fixture" must start with http:// or https://, not file://'],
    [{ command: "" }, 'The server "fixture" has neither a command nor a url.'],
  ])("%j", (server, message) => {
    expect(() => openSource({ server })).toThrow(
      expect.objectContaining({ name: "UsageError", code: "MCP_SERVER_ENTRY_INVALID", message }),
    );
  });
});

describe("reconnecting to a server that is down", () => {
  it("waits, and doubles the wait up to a maximum", async () => {
    const clock = { time: 0, now: () => clock.time };
    const server = { command: "/bin/sh", args: ["-c", "echo started >&2; exit 1"] };
    await using fixture = openSource({ server, clock, backoff: { firstMs: 100, maxMs: 300 } });
    const starts = () => fixture.logs.filter((line) => line === "stderr: started").length;
    const startCounts: number[] = [];
    for (const time of [0, 99, 100, 299, 300, 599, 600, 899, 900]) {
      clock.time = time;
      const { gap } = await fixture.source.tools();
      expect(gap?.reason).toBe("The server's process exited with code 1 before it was ready. Its last lines on stderr: started");
      startCounts.push(starts());
    }
    // Each attempt starts the server twice: once with version negotiation and once without.
    expect(startCounts).toEqual([2, 2, 4, 4, 6, 6, 8, 8, 10]);
  });

  it("waits also after a server that does not list its tools", async () => {
    const clock = { time: 0, now: () => clock.time };
    await using fixture = openSource({ server: fixtureEntry("old-server", "--no-list"), clock, connectTimeoutMs: 5_000 });
    const down = { tools: [], gap: { server: "fixture", reason: 'The server "fixture" did not answer in time.' } };
    const starts = () => fixture.logs.filter((line) => line === "stderr: started").length;
    const startCounts: number[] = [];
    for (const time of [0, 0, 999, 1_000, 2_999]) {
      clock.time = time;
      expect(await fixture.source.tools()).toEqual(down);
      startCounts.push(starts());
    }
    expect(startCounts).toEqual([1, 1, 1, 2, 2]);
  });

  it("makes one attempt for all callers, which goes on when one of them aborts", async () => {
    await using fixture = openSource({ server: fixtureEntry("sdk-server") });
    const abort = new AbortController();
    const aborted = expect(fixture.source.tools(abort.signal)).rejects.toThrow("too slow");
    const others = Promise.all([fixture.source.tools(), fixture.source.tools()]);
    abort.abort(new Error("too slow"));
    await aborted;
    expect((await others).map(({ gap }) => gap)).toEqual([null, null]);
  });
});
