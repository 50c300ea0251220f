import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CallToolResult } from "@modelcontextprotocol/client";
import { parseToolError } from "../src/errors/tool-error.ts";
import { type Elicited, generations, openHttpClient, openStdioClient, textOf, type TestClient } from "./fixtures/mcp-clients.ts";
import { openMcpEndpoint } from "./fixtures/open-mcp-endpoint.ts";
import { notesServer } from "./fixtures/open-test-server.ts";

const yes: Elicited = { action: "accept", content: { approve: true } };
const declined: readonly Elicited[] = [{ action: "decline" }, { action: "cancel" }, { action: "accept", content: { approve: false } }];

let directory: string;
let record: string;
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), "sluice-approval-"));
  record = path.join(directory, "calls.jsonl");
});
afterEach(() => rmSync(directory, { recursive: true }));

const entry = (more: object = {}): Record<string, unknown> => ({
  ...{ command: process.execPath, args: [notesServer, record], expose: true },
  ...more,
});
/** The calls that reached the server, from its own record. */
const calls = (): unknown[] =>
  existsSync(record)
    ? readFileSync(record, "utf8")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as unknown)
    : [];
const script = (code: string): { code: string } => ({ code });
const summaryOf = (result: CallToolResult): string => parseToolError(textOf(result)["error"])?.summary ?? "";

/** Starts `sluice mcp` with this entry for the server `my notes`. */
async function openMcp(
  generation: (typeof generations)[number],
  server: object,
  elicit?: (message: string) => Elicited,
): Promise<TestClient> {
  writeFileSync(
    path.join(directory, "sluice.config.json"),
    JSON.stringify({ mcpServers: { "my notes": server }, sandbox: { poolSize: 0 } }),
  );
  return await openStdioClient(generation, { args: ["--config", "sluice.config.json"], cwd: directory, elicit });
}

describe.each(generations)("a tool without annotations and a client of %s", { timeout: 180_000 }, (generation) => {
  test("is refused if the client cannot ask, with a line that allows it when it is pasted into the configuration", async () => {
    let server = entry({ allow: ["get_slow"] });
    for (const tool of ["add_note", "delete_note"]) {
      let lines: string[];
      {
        await using client = await openMcp(generation, server);
        const direct = await client.call(tool, { symbol: "A" });
        const scripted = await client.call("execute", script(`return await call_tool("${tool}", {"symbol": "A"})`));
        expect([direct.isError, scripted.isError]).toEqual([true, true]);
        lines = [direct, scripted].map((result) => {
          expect(summaryOf(result)).toContain('in mcpServers["my notes"] of sluice.config.json');
          return /"allow": \[.*?\]/.exec(summaryOf(result))![0];
        });
        const { tools } = textOf<{ tools: { policy: string }[] }>(await client.call("get_schema", { tools: tool }));
        expect(tools[0]!.policy).toContain(`${tool} may not be called: it `);
      }
      const before = calls().length;
      expect(new Set(lines).size).toBe(1);
      server = { ...server, ...(JSON.parse(`{${lines[0]}}`) as object) };
      await using client = await openMcp(generation, server);
      expect(textOf(await client.call(tool, { symbol: "A" }))).toMatchObject({ status: "ok" });
      expect(calls().slice(before)).toEqual([[tool, { symbol: "A" }]]);
    }
    expect(server["allow"]).toEqual(["get_slow", "add_note", "delete_note"]);
  });

  test("is called once if the client's user approves, and not at all otherwise", async () => {
    const asked: string[] = [];
    const answers = [...declined, yes];
    await using client = await openMcp(generation, entry(), (message) => (asked.push(message), answers.shift()!));
    for (const _ of declined) expect(summaryOf(await client.call("add_note", { symbol: "A" }))).toContain("the user said no.");
    expect(calls()).toEqual([]);
    expect(textOf(await client.call("add_note", { symbol: "B" }))).toMatchObject({ status: "ok" });
    expect(calls()).toEqual([["add_note", { symbol: "B" }]]);
    expect(asked.at(-1)).toBe(
      'The tool add_note of the server my notes does not say that it only reads. Call it with these arguments?\n{\n  "symbol": "B"\n}',
    );
    await client.call("get_prices", { symbol: "C" });
    expect(asked).toHaveLength(4);
  });

  test("in a script waits for the answer in the middle of the script, which is not run again", async () => {
    const asked: string[] = [];
    await using client = await openMcp(generation, entry(), (message) => {
      asked.push(message);
      return message.includes("no") && message.includes('"symbol": "no"') ? { action: "decline" } : yes;
    });
    const code = `
import asyncio
await call_tool("get_prices", {"symbol": "first"})
async def add(symbol):
    try:
        return (await call_tool("add_note", {"symbol": symbol}))["added"]
    except RuntimeError as error:
        return "the user said no" in str(error) and "refused"
several = await asyncio.gather(add("A"), add("no"), add("C"))
return several + [await add("D")]`;
    expect(textOf(await client.call("execute", script(code)))).toMatchObject({ status: "ok", result: [true, "refused", true, true] });
    expect(asked).toHaveLength(4);
    const made = calls() as [string, { symbol: string }][];
    expect(made.map(([, { symbol }]) => symbol).sort()).toEqual(["A", "C", "D", "first"]);
  });

  test("is asked about over HTTP, too, for each client by its own answers", async () => {
    await using opened = await openMcpEndpoint({ configuration: { mcpServers: { notes: entry() } } });
    await using ann = await openHttpClient(generation, opened.url, { "x-tenant": "ann" }, { elicit: () => yes });
    await using bob = await openHttpClient(generation, opened.url, { "x-tenant": "bob" }, { elicit: () => ({ action: "decline" }) });
    await using cy = await openHttpClient(generation, opened.url, { "x-tenant": "cy" });
    const results = await Promise.all([ann, bob, cy].map((client, at) => client.call("add_note", { symbol: `${at}` })));
    expect(results.map((result) => result.isError ?? false)).toEqual([false, true, true]);
    expect(summaryOf(results[2]!)).toContain('set "allow": ["add_note"] in mcpServers.notes of sluice.config.json');
    expect(calls()).toEqual([["add_note", { symbol: "0" }]]);
  });

  test("says how to allow it when the client fails to ask", async () => {
    await using client = await openMcp(generation, entry(), () => {
      throw new Error("no window");
    });
    const result = await client.call("add_note", { symbol: "A" }).catch((error: unknown) => error as Error);
    if (!(result instanceof Error)) expect(summaryOf(result)).toContain('set "allow": ["add_note"]');
    expect(calls()).toEqual([]);
  });
});
