import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { describe, expect, it } from "vitest";
import { createEvidenceStore } from "../../evidence/create-evidence-store.ts";
import { parseProbe } from "../../protocol/probe.ts";
import { fixtureEntry, openSource, readAnswerText } from "./fixtures/open-fixture.ts";

const sdkServer = fixtureEntry("sdk-server");

/** Generous, for a busy machine. */
const patience = { timeout: 30_000 };

describe("a stdio server", () => {
  it("is not started before its tools are listed", async () => {
    await using fixture = openSource({ server: { command: "/nonexistent/program" } });
    expect(fixture.source.name).toBe("fixture");
    expect(fixture.logs).toEqual([]);
  });

  it("speaks the current version and describes its own tools", async () => {
    await using fixture = openSource({ server: sdkServer });
    const { call: _, ...echo } = await fixture.tool("echo");
    expect(echo).toEqual({
      name: "echo",
      server: "fixture",
      title: "Echo",
      description: "Returns its arguments.",
      inputSchema: expect.objectContaining({ type: "object", properties: { text: { type: "string" } } }),
      outputSchema: undefined,
      annotations: { readOnlyHint: true },
      tags: ["fixture", "plain", "words", "fast", "under"],
    });
    expect(readAnswerText(await fixture.call("about"))).toMatchObject({ era: "modern" });
  });

  it.each([["2025-11-25"], ["2025-06-18"], ["2024-11-05"]])("speaks %s with a server that knows no newer version", async (version) => {
    await using fixture = openSource({ server: fixtureEntry("old-server", version) });
    const { output } = await fixture.call("about");
    expect(output).toMatchObject({ structuredContent: { version } });
  });

  it("can exit during version negotiation and is then started without it", async () => {
    await using fixture = openSource({ server: fixtureEntry("old-server", "--exit-when-asked") });
    expect(await fixture.call("about")).toMatchObject({ output: { structuredContent: { version: "2025-11-25" } } });
  });

  it("lists its tools in pages; a malformed or repeated one is skipped", async () => {
    await using fixture = openSource({ server: fixtureEntry("old-server") });
    const { tools, gap } = await fixture.source.tools();
    expect(gap).toBeNull();
    expect(tools.map(({ name }) => name)).toEqual([
      ...Array.from({ length: 25 }, (_, index) => `tool_${index + 1}`),
      "exact",
      "strange",
      "endless",
      "late",
      "about",
    ]);
    expect(fixture.logs).toEqual([
      'client: skipped a tool that violates the protocol: {"name":7}',
      "client: the tool tool_1 is listed twice; the first is used",
    ]);
  });

  it("gets arguments and _meta, but no forged keys of the protocol", async () => {
    await using fixture = openSource({ server: sdkServer });
    const meta = { "sluice/identity": "acme", progressToken: "forged", "io.modelcontextprotocol/protocolVersion": "1999-01-01" };
    const answer = readAnswerText<{ args: unknown; meta: Record<string, unknown> }>(await fixture.call("echo", { text: "hä" }, { meta }));
    expect(answer.args).toEqual({ text: "hä" });
    expect(answer.meta).toMatchObject({ "sluice/identity": "acme", progressToken: expect.any(Number) as number });
    expect(JSON.stringify(answer.meta)).not.toContain("1999-01-01");
  });

  it("returns an answer with isError, and the probe reports a failure", async () => {
    await using fixture = openSource({ server: sdkServer });
    expect(await fixture.call("fail")).toEqual({
      output: expect.objectContaining({ content: [{ type: "text", text: "no such campaign" }], isError: true }) as unknown,
      as: "mcp",
      structuredJson: undefined,
    });
    expect(fixture.probes.map((line) => parseProbe(line))).toEqual([
      { source: "mcp-latency-probe", fields: { event: "mcp_call_start", server: "fixture", tool: "fail" } },
      {
        source: "mcp-latency-probe",
        fields: {
          event: "mcp_call_failure",
          server: "fixture",
          tool: "fail",
          bytes: expect.any(Number) as number,
          ms: expect.any(Number) as number,
          code: "TOOL_ERROR",
        },
      },
    ]);
  });

  it("logs probes for the start and success of a call with bytes and milliseconds", async () => {
    await using fixture = openSource({ server: sdkServer });
    await fixture.call("echo", { text: "x" });
    expect(fixture.probes[0]).toBe('[mcp-latency-probe] event=mcp_call_start server="fixture" tool="echo"');
    expect(fixture.probes[1]).toMatch(/^\[mcp-latency-probe\] event=mcp_call_success server="fixture" tool="echo" bytes=\d+ ms=[\d.]+$/);
  });

  it("keeps an answer that breaks its output schema complete and its numbers exact", async () => {
    await using fixture = openSource({ server: fixtureEntry("old-server") });
    const answer = await fixture.call("exact");
    expect(answer.structuredJson).toBe('{"id": 9007199254740993, "rate":1.10, "note":"a \\"}\\" b"}');
    expect(answer.output).toMatchObject({ structuredContent: { rate: 1.1, note: 'a "}" b' } });
  });

  it("can answer with parts of an unknown kind", async () => {
    await using fixture = openSource({ server: fixtureEntry("old-server") });
    expect((await fixture.call("strange")).output).toEqual({
      content: [
        { type: "hologram", rays: 3 },
        { type: "text", text: "beside it" },
      ],
    });
  });

  it("can print lines that are not messages", async () => {
    await using fixture = openSource({ server: fixtureEntry("old-server", "--noisy") });
    expect(await fixture.call("about")).toMatchObject({ output: { structuredContent: { version: "2025-11-25" } } });
    expect(fixture.logs).toContain("client: not a message on stdout: Welcome to the old server!");
  });

  it("answers an unknown tool with a JSON-RPC error whose code and data are kept", async () => {
    await using fixture = openSource({ server: fixtureEntry("old-server") });
    await expect(fixture.call("tool_2")).rejects.toMatchObject({
      name: "McpCallError",
      code: "MCP_RPC_ERROR",
      message: 'The server "fixture" answered with error -32602: Unknown tool: tool_2',
      cause: expect.objectContaining({ code: -32602, data: { near: "tool_1" } }) as Error,
    });
  });

  it("restarts the timeout of a call with every progress notification", async () => {
    await using fixture = openSource({ server: sdkServer, timeoutMs: 1_500 });
    const reported: unknown[] = [];
    const answer = await fixture.call("slow", { steps: 4, stepMs: 500 }, { onProgress: (progress) => reported.push(progress) });
    expect(answer.output).toMatchObject({ content: [{ text: "done" }] });
    expect(reported).toEqual([1, 2, 3, 4].map((step) => ({ progress: step, total: 4, message: `step ${step}` })));
  });

  it("is notified when a call is cancelled", async () => {
    await using fixture = openSource({ server: sdkServer });
    const abort = new AbortController();
    const reason = new Error("no longer needed");
    const onProgress = () => abort.abort(reason);
    await expect(fixture.call("slow", { steps: 1_000, stepMs: 20 }, { signal: abort.signal, onProgress })).rejects.toBe(reason);
    await expect.poll(async () => readAnswerText(await fixture.call("cancelled")), patience).toEqual({ cancelled: 1 });
    expect(fixture.probes[1]).toMatch(
      /^\[mcp-latency-probe\] event=mcp_call_failure server="fixture" tool="slow" ms=[\d.]+ code="CANCELLED"$/,
    );
  });

  it("is notified when a call times out", async () => {
    await using fixture = openSource({ server: sdkServer, timeoutMs: 2_000 });
    await expect(fixture.call("slow", { steps: 1, stepMs: 60_000 })).rejects.toMatchObject({
      code: "MCP_TIMEOUT",
      message: 'The server "fixture" did not answer in time.',
    });
    await expect.poll(async () => readAnswerText(await fixture.call("cancelled")), patience).toEqual({ cancelled: 1 });
  });

  it("can answer after the timeout without an error in the log", async () => {
    await using fixture = openSource({ server: fixtureEntry("old-server"), timeoutMs: 1_500 });
    await Promise.all([1, 2].map(() => expect(fixture.call("late")).rejects.toMatchObject({ code: "MCP_TIMEOUT" })));
    await expect.poll(async () => (await fixture.call("about")).output, patience).toMatchObject({ structuredContent: { lateAnswers: 2 } });
    expect(fixture.logs.filter((line) => line.includes("unknown message"))).toEqual([]);
  });

  it("returns the same listing as long as nothing changes", async () => {
    await using fixture = openSource({ server: fixtureEntry("old-server") });
    expect(await fixture.source.tools()).toBe(await fixture.source.tools());
  });

  it("can exit during a call: that call fails, and the next one starts it again", async () => {
    await using fixture = openSource({ server: sdkServer });
    const before = readAnswerText<{ pid: number }>(await fixture.call("about"));
    const [slow, die] = [await fixture.tool("slow"), await fixture.tool("die")];
    const inFlight = slow.call({ steps: 1, stepMs: 60_000 }, {});
    const lost = {
      code: "MCP_CONNECTION_LOST",
      message: "The server's process exited with code 7 during the call. Its last lines on stderr: about to die",
    };
    await Promise.all([expect(inFlight).rejects.toMatchObject(lost), expect(die.call({ code: 7 }, {})).rejects.toMatchObject(lost)]);
    const after = readAnswerText<{ pid: number }>(await (await fixture.tool("about")).call({}, {}));
    expect(after.pid).not.toBe(before.pid);
  });

  it("is listed again after its tools have changed", async () => {
    await using fixture = openSource({ server: sdkServer });
    const before = (await fixture.source.tools()).tools.length;
    await fixture.call("grow", { tools: 30 });
    await expect.poll(async () => (await fixture.source.tools()).tools.length, patience).toBe(before + 30);
    expect((await fixture.source.tools()).tools.map(({ name }) => name)).toContain("extra_30");
  });

  it("can answer with 100 MB", { timeout: 180_000 }, async () => {
    await using fixture = openSource({ server: sdkServer });
    const answer = await fixture.call("big", { megabytes: 100 });
    expect(answer.output).toMatchObject({ content: [] });
    const item = createEvidenceStore().add({ tool: "big", ...answer });
    const texts = JSON.parse(Buffer.from(item.read()).toString("utf8")) as string[];
    expect([item.bytes, item.shape.rows, texts.reduce((sum, text) => sum + text.length, 0)]).toEqual([100_000_301, 100, 100_000_000]);
  });

  it("is stopped when a message is longer than allowed", async () => {
    await using fixture = openSource({ server: fixtureEntry("old-server"), maxMessageBytes: 1_000_000 });
    await expect(fixture.call("endless")).rejects.toMatchObject({
      code: "MCP_CONNECTION_LOST",
      message: 'The server "fixture" was stopped because a message is longer than 1000000 bytes.',
    });
    expect((await fixture.source.tools()).gap).toBeNull();
  });

  it("gets a minimal environment and the variables of its entry", async () => {
    const environment = {
      PATH: process.env["PATH"],
      HOME: "/home/user",
      LANG: "C.UTF-8",
      AWS_SECRET_ACCESS_KEY: "s3cret",
      TZ: "() { :; }",
    };
    const server = { ...sdkServer, env: { ADS_TOKEN: "given", LANG: "de_DE.UTF-8" }, cwd: tmpdir() };
    await using fixture = openSource({ server, environment });
    const about = readAnswerText<{ environment: object; cwd: string }>(await fixture.call("about"));
    expect(about.environment).toEqual({ PATH: process.env["PATH"], HOME: "/home/user", LANG: "de_DE.UTF-8", ADS_TOKEN: "given" });
    expect(about.cwd).toBe(tmpdir());
  });
});

describe("disposing a source", () => {
  it("kills a server that ignores SIGTERM, and its children", async () => {
    const fixture = openSource({ server: fixtureEntry("old-server", "--stubborn"), killAfterMs: 200, environment: process.env });
    const { output } = await fixture.call("about");
    const { pid, child } = (output as { structuredContent: { pid: number; child: number } }).structuredContent;
    expect([isAlive(pid), isAlive(child)]).toEqual([true, true]);
    await Promise.all([fixture.source[Symbol.asyncDispose](), fixture.source[Symbol.asyncDispose]()]);
    await fixture.source[Symbol.asyncDispose]();
    await expect.poll(() => [isAlive(pid), isAlive(child)], patience).toEqual([false, false]);
  });

  it("fails running and later calls", async () => {
    const fixture = openSource({ server: sdkServer });
    const { pid } = readAnswerText<{ pid: number }>(await fixture.call("about"));
    const slow = await fixture.tool("slow");
    const closed = { code: "MCP_UNREACHABLE", message: "The connection to the server was closed." };
    const inFlight = expect(slow.call({ steps: 1, stepMs: 60_000 }, {})).rejects.toMatchObject(closed);
    await fixture.source[Symbol.asyncDispose]();
    await inFlight;
    await expect(slow.call({}, {})).rejects.toMatchObject(closed);
    expect(await fixture.source.tools()).toEqual({ tools: [], gap: { server: "fixture", reason: closed.message } });
    await expect.poll(() => isAlive(pid), patience).toBe(false);
  });

  it("aborts an attempt to connect", async () => {
    const fixture = openSource({ server: fixtureEntry("old-server", "--silent") });
    const listing = fixture.source.tools();
    await fixture.source[Symbol.asyncDispose]();
    expect(await listing).toEqual({ tools: [], gap: { server: "fixture", reason: "The connection to the server was closed." } });
  });
});

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}/exe`);
}
