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

describe("a server that is down is a gap that says why:", () => {
  it("no such program", async () => {
    expect(await reasonOf({ command: "no-such-program-anywhere" })).toBe('The program "no-such-program-anywhere" was not found.');
  });

  it("no such program or directory", async () => {
    expect(await reasonOf({ command: process.execPath, cwd: "/no/such/directory" })).toBe(
      `The program ${JSON.stringify(process.execPath)} or the directory "/no/such/directory" was not found.`,
    );
  });

  it("a program that may not be run", async () => {
    expect(await reasonOf({ command: import.meta.filename })).toBe(`The program ${JSON.stringify(import.meta.filename)} may not be run.`);
  });

  it("the server exits, with its last lines on stderr and without the secrets of its entry", async () => {
    const server = { ...fixtureEntry("old-server", "--exit"), env: { SECRET_KEY: "hunter2-hunter2" } };
    expect(await reasonOf(server)).toBe(
      "The server's process exited with code 3 before it was ready. Its last lines on stderr: first line | the key is [hidden]",
    );
  });

  it("the server does not answer", async () => {
    expect(await reasonOf(fixtureEntry("old-server", "--silent"), 1_000)).toBe("The server did not answer within 1 s.");
  });

  it("the server prints something else than the protocol", async () => {
    const server = { command: "/bin/sh", args: ["-c", "echo hello there; sleep 60"] };
    expect(await reasonOf(server, 3_000)).toBe("The server did not answer within 3 s. What it prints is not the protocol: hello there");
  });

  it("nothing listens", async () => {
    const server = await openHttpFixture("old-http-server");
    await server.kill();
    expect(await reasonOf({ url: `${server.url}?key=s3cret` })).toBe(`Nothing listens at ${server.url} (connection refused).`);
  });

  it("no such host", async () => {
    expect(await reasonOf({ url: "http://no-such-host.invalid/mcp" })).toBe("The host no-such-host.invalid was not found.");
  });

  it("the server wants authorization", async () => {
    await using server = await openHttpFixture("old-http-server");
    expect(await reasonOf({ url: `${server.url}?locked` })).toBe(
      "The server wants authorization (HTTP 401). Set its headers in the configuration.",
    );
    await using fixture = openSource({ server: { url: `${server.url}?locked`, headers: { authorization: "Bearer right-token" } } });
    expect((await fixture.source.tools()).gap).toBeNull();
  });

  it("the server is not an MCP server", async () => {
    await using server = await openHttpFixture("old-http-server");
    expect(await reasonOf({ url: `${server.url}?page` })).toBe(
      `What answers at ${server.url} does not speak MCP: Unexpected content type: text/html`,
    );
    expect(await reasonOf({ url: `${server.url}?status=500` })).toBe("The server answered with HTTP 500.");
    expect(await reasonOf({ url: `${server.url}?status=404` })).toBe("The server answered with HTTP 404.");
  });
});

describe("an entry that can never work is refused before anything starts:", () => {
  it.each([
    [{ url: "not a url" }, 'The url of the server "fixture" is no URL: not a url'],
    [{ url: "file:///etc/passwd" }, 'The url of the server "fixture" must begin with http:// or https://, not file://'],
    [{ command: "" }, 'The server "fixture" has neither a command nor a url.'],
  ])("%j", (server, message) => {
    expect(() => openSource({ server })).toThrow(
      expect.objectContaining({ name: "UsageError", code: "MCP_SERVER_ENTRY_INVALID", message }),
    );
  });
});

describe("a server that is down is tried again", () => {
  it("after a wait that doubles up to a bound, and not before", async () => {
    const clock = { at: 0, now: () => clock.at };
    const server = { command: "/bin/sh", args: ["-c", "echo started >&2; exit 1"] };
    await using fixture = openSource({ server, clock, backoff: { firstMs: 100, maxMs: 300 } });
    const starts = () => fixture.logs.filter((line) => line === "stderr: started").length;
    const seen: number[] = [];
    for (const at of [0, 99, 100, 299, 300, 599, 600, 899, 900]) {
      clock.at = at;
      const { gap } = await fixture.source.tools();
      expect(gap?.reason).toBe("The server's process exited with code 1 before it was ready. Its last lines on stderr: started");
      seen.push(starts());
    }
    // Each attempt starts it twice: once to ask for its version, once the old way.
    expect(seen).toEqual([2, 2, 4, 4, 6, 6, 8, 8, 10]);
  });

  it("when it does not say what its tools are", async () => {
    const clock = { at: 0, now: () => clock.at };
    await using fixture = openSource({ server: fixtureEntry("old-server", "--no-list"), clock, connectTimeoutMs: 5_000 });
    const down = { tools: [], gap: { server: "fixture", reason: 'The server "fixture" did not answer in time.' } };
    const starts = () => fixture.logs.filter((line) => line === "stderr: started").length;
    const seen: number[] = [];
    for (const at of [0, 0, 999, 1_000, 2_999]) {
      clock.at = at;
      expect(await fixture.source.tools()).toEqual(down);
      seen.push(starts());
    }
    expect(seen).toEqual([1, 1, 1, 2, 2]);
  });

  it("by one attempt for all who wait, and one who gives up does not end it for the others", async () => {
    await using fixture = openSource({ server: fixtureEntry("sdk-server") });
    const abort = new AbortController();
    const impatient = expect(fixture.source.tools(abort.signal)).rejects.toThrow("too slow");
    const patient = Promise.all([fixture.source.tools(), fixture.source.tools()]);
    abort.abort(new Error("too slow"));
    await impatient;
    expect((await patient).map(({ gap }) => gap)).toEqual([null, null]);
  });
});
