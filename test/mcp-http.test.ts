import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openDataFiles } from "../src/data/open-data-files.ts";
import { createTables } from "../src/data/tables/create-tables.ts";
import { cell, generations, openHttpClient, textOf } from "./fixtures/mcp-clients.ts";
import { openMcpEndpoint, type TestEndpoint } from "./fixtures/open-mcp-endpoint.ts";

const HANG_MS = 180_000;

test("creates the tools of code mode once for all clients and calls", async () => {
  const created = vi.fn<() => void>();
  await using opened = await openMcpEndpoint({
    parts: ({ runtime }) => {
      const { createCodeModeTools } = runtime;
      return { runtime: { ...runtime, createCodeModeTools: (options) => (created(), createCodeModeTools(options)) } };
    },
  });
  const perRequest = vi.spyOn(opened.configured.runtime, "createCodeMode");
  for (const generation of generations) {
    await using client = await openHttpClient(generation, opened.url);
    for (const query of ["price", ""]) expect(textOf(await client.call("search", { query }))).toMatchObject({ found: "0 of 0 tools" });
  }
  expect(created).toHaveBeenCalledTimes(1);
  expect(perRequest).not.toHaveBeenCalled();
});

describe("the MCP endpoint over HTTP", () => {
  let opened: TestEndpoint;
  beforeAll(async () => {
    // Longer than the test waits, so that only cancelling can end a cell.
    opened = await openMcpEndpoint({ configuration: { limits: { sandbox: { cellTimeoutMs: 900_000 } } } });
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test("keeps data and variables for a client of 2025-11-25 on its connection", { timeout: HANG_MS }, async () => {
    await using client = await openHttpClient("2025-11-25", opened.url);
    await client.call("store_data", { name: "prices", data: [{ price: 1 }, { price: 2.5 }] });
    const first = await client.call(
      "code_interpreter",
      cell("total = float(to_frame(prices)['price'].sum())\nset_result(total)", ["prices"]),
    );
    expect(textOf(first)).toMatchObject({ status: "ok", result: 3.5 });
    const second = await client.call("code_interpreter", cell("set_result(total * 2)", ["prices"]));
    expect(textOf(second)).toMatchObject({ status: "ok", result: 7, resultAlias: "result_2" });
    expect(textOf(second)).not.toHaveProperty("session");
  });

  test(
    "gives a client of 2026-07-28 a handle to pass back, and a new sandbox for each call without one",
    { timeout: HANG_MS },
    async () => {
      await using client = await openHttpClient("2026-07-28", opened.url);
      const stored = textOf(await client.call("store_data", { name: "prices", data: [{ price: 1 }, { price: 2.5 }] }));
      const { session } = stored as { session: string };
      expect(stored).toMatchObject({
        alias: "prices",
        state_scope: "request",
        session_note: `No session was passed, so this call had a sandbox of its own, which is closed now. Its aliases are kept for 60 minutes. To use them, and to keep variables from now on, pass "session": "${session}" with the next call.`,
      });
      const code = "total = float(to_frame(prices)['price'].sum())\nset_result(total)";
      const alone = await client.call("code_interpreter", cell(code, ["prices"]));
      expect(alone.isError).toBe(true);
      expect(textOf(alone)).toMatchObject({ status: "refused", error: { error_code: "ALIAS_UNKNOWN" }, state_scope: "request" });

      const first = textOf(await client.call("code_interpreter", { ...cell(code, ["prices"]), session }));
      expect(first).toMatchObject({ status: "ok", result: 3.5, session, state_scope: "session" });
      expect(first).not.toHaveProperty("session_note");
      const second = textOf(await client.call("code_interpreter", { ...cell("set_result(total * 2)", ["prices"]), session }));
      expect(second).toMatchObject({ status: "ok", result: 7, session });
    },
  );

  test.each(generations)("isolates tenants and connections of clients of %s", { timeout: HANG_MS }, async (generation) => {
    await using one = await openHttpClient(generation, opened.url, { "x-tenant": "one" });
    await using other = await openHttpClient(generation, opened.url, { "x-tenant": "other" });
    const { session } = textOf(await one.call("store_data", { name: "secret", data: [{ n: 1 }] }));
    const handle = session === undefined ? {} : { session };
    expect(textOf(await one.call("list_data", handle))).toMatchObject({ data: [{ alias: "secret" }] });
    const listed = textOf(await other.call("list_data", handle));
    if (session === undefined) expect(listed).toMatchObject({ data: [] });
    else
      expect(listed).toEqual({
        status: "refused",
        error: {
          error_kind: "precondition_failed",
          tool: "list_data",
          summary: "No session has this handle: it ended or was idle for too long.",
          details: [{ path: "session", issue: "is not known", received_type: "string" }],
          hints: ["Call without session to start a new one, then store or fetch the data again."],
          examples: [],
          error_code: "SESSION_UNKNOWN",
          retryable: false,
          _envelope_version: 1,
        },
      });

    // Another connection of the same tenant sees nothing either.
    await using beside = await openHttpClient(generation, opened.url, { "x-tenant": "one" });
    await one.call("code_interpreter", { ...cell("hidden = 1\nset_result(hidden)", ["secret"]), ...handle });
    const { session: another } = textOf<{ session?: string }>(await beside.call("store_data", { name: "own", data: [1] }));
    const besideHandle = another === undefined ? {} : { session: another };
    expect(textOf(await beside.call("list_data", besideHandle))).toMatchObject({ data: [{ alias: "own" }] });
    expect(textOf(await beside.call("read_data", { alias: "secret", ...besideHandle }))).toMatchObject({
      error: { error_code: "ALIAS_UNKNOWN" },
    });
    const foreign = textOf(await beside.call("code_interpreter", { ...cell("set_result(hidden)", ["own"]), ...besideHandle }));
    expect(foreign).toMatchObject({
      status: "python_error",
      error: { summary: expect.stringContaining("'hidden' is not defined") as string },
    });
    await expect(beside.read(another === undefined ? "sluice://data/secret" : `sluice://sessions/${another}/data/secret`)).rejects.toThrow(
      "data/secret",
    );
  });

  test("lists data in pages and accepts only its own cursors", { timeout: HANG_MS }, async () => {
    await using client = await openHttpClient("2025-11-25", opened.url);
    const names = Array.from({ length: 103 }, (_, n) => `data_${n}`);
    for (const name of names) await client.call("store_data", { name, data: [1] });
    const uris = names.map((name) => `sluice://data/${name}`);
    expect((await client.resources()).filter((uri) => uri.startsWith("sluice://data/"))).toEqual(uris.slice(0, 100));
    expect(await client.resources("100")).toEqual(uris.slice(100));
    for (const cursor of ["", "0", "7", "200", "-100", "1e2x"])
      await expect(client.resources(cursor)).rejects.toThrow(
        `Unknown cursor ${JSON.stringify(cursor)}: use the nextCursor of an earlier list.`,
      );
  });

  test("refuses another tenant that sends the Mcp-Session-Id of a connection", { timeout: HANG_MS }, async () => {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const post = (body: object, more: Record<string, string>): Promise<Response> =>
      fetch(opened.url, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body) });
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } };
    const opening = await post({ jsonrpc: "2.0", id: 1, method: "initialize", params }, { "x-tenant": "one" });
    const id = opening.headers.get("mcp-session-id") ?? "";
    await opening.text();
    expect(id).toMatch(/^[\w-]{24}$/);
    const list = { jsonrpc: "2.0", id: 2, method: "tools/list" };
    const own = await post(list, { "x-tenant": "one", "mcp-session-id": id });
    expect(own.status).toBe(200);
    await own.text();
    const foreign = await post(list, { "x-tenant": "other", "mcp-session-id": id });
    expect([foreign.status, await foreign.json()]).toEqual([
      404,
      {
        jsonrpc: "2.0",
        error: { code: -32_001, message: "Session not found: it ended or was idle for too long. Send initialize to start a new one." },
        id: null,
      },
    ]);
    const without = await post(list, { "x-tenant": "one" });
    expect(without.status).toBe(400);
  });

  test.each(generations)("stops a running cell when a client of %s cancels its call", { timeout: HANG_MS }, async (generation) => {
    await using client = await openHttpClient(generation, opened.url);
    const { session } = textOf(await client.call("store_data", { name: "rows", data: [1] }));
    const handle = session === undefined ? {} : { session };
    const stop = new AbortController();
    const code = "print('running', flush=True)\nwhile True: pass";
    const running = client.call(
      "code_interpreter",
      { ...cell(code, ["rows"]), ...handle },
      {
        signal: stop.signal,
        onprogress: ({ message }) => message === "running" && stop.abort(new Error("enough")),
      },
    );
    await expect(running).rejects.toThrow("enough");
    // Cells of a connection run one at a time, so this one can only run because the other was stopped.
    const after = await client.call("code_interpreter", { ...cell("set_result('next')", ["rows"]), ...handle });
    expect(textOf(after)).toMatchObject({ status: "ok", result: "next" });
  });

  test.each(generations)("stops reading a large file when a client of %s cancels its call", { timeout: HANG_MS }, async (generation) => {
    const directory = mkdtempSync(path.join(tmpdir(), "sluice-cancel-"));
    try {
      writeFileSync(path.join(directory, "many.csv"), Buffer.concat([Buffer.from("a,b\n"), Buffer.alloc(60_000_000, "123,4567890\n")]));
      const files = await openDataFiles({ paths: [directory], maxFileBytes: 256e6 });
      await using own = await openMcpEndpoint({
        parts: ({ runtime }) => ({ files, tables: createTables({ ...runtime, idleMs: 3_600_000, graceMs: 0 }) }),
      });
      await using client = await openHttpClient(generation, own.url);
      const { gate } = own.configured.runtime;
      for (const [name, args] of [
        ["render_chart", { alias: "many", spec: { type: "line", xKey: "a", series: [{ key: "b" }] } }],
        ["read_data", { alias: "many" }],
        ["list_data", { aliases: ["many"] }],
      ] as const) {
        const stop = new AbortController();
        const running = client.call(name, args, { signal: stop.signal });
        while (gate.taken === 0) await sleep(5);
        stop.abort(new Error("enough"));
        await expect(running).rejects.toThrow("enough");
        while (gate.taken > 0) await sleep(5);
      }
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test.each(generations)("hides data and images of a client of %s from other tenants", { timeout: HANG_MS }, async (generation) => {
    await using one = await openHttpClient(generation, opened.url, { "x-tenant": "one" });
    await using other = await openHttpClient(generation, opened.url, { "x-tenant": "other" });
    const { session } = textOf<{ session?: string }>(
      await one.call("store_data", { name: "rows", data: Array.from({ length: 2000 }, (_, n) => ({ n })) }),
    );
    const handle = session === undefined ? {} : { session };
    const code = `plt.plot([1, 2])\nplt.title('${generation}')\nsave_figure('A short line that rises')\nset_result(rows)`;
    const { content } = await one.call("code_interpreter", { ...cell(code, ["rows"], ["image"]), ...handle });
    const picture = content.find((block) => block.type === "image")?._meta?.["url"] as string;
    const data = content.find((block) => block.type === "resource_link")?.uri ?? "";
    expect(data).toBe(session === undefined ? "sluice://data/result_1" : `sluice://sessions/${session}/data/result_1`);
    for (const uri of [picture, data]) {
      expect((await one.read(uri)).contents).toHaveLength(1);
      await expect(other.read(uri)).rejects.toThrow(uri);
    }
  });

  test.each(generations)(
    "serves the chart app to clients of %s and names it on the tools that make charts",
    { timeout: HANG_MS },
    async (generation) => {
      const directory = mkdtempSync(path.join(tmpdir(), "sluice-chart-app-"));
      const chartAppFile = path.join(directory, "chart-app.html");
      writeFileSync(chartAppFile, "<!doctype html><title>Chart</title>");
      try {
        await using own = await openMcpEndpoint({ parts: () => ({ chartAppFile }) });
        await using client = await openHttpClient(generation, own.url);
        const tools = await client.tools();
        const named = tools.filter(
          ({ _meta }) => (_meta?.["ui"] as { resourceUri?: string } | undefined)?.resourceUri === "ui://sluice/chart.html",
        );
        expect(named.map(({ name }) => name)).toEqual(["code_interpreter", "python_code_edit", "render_chart"]);
        expect(await client.resources()).toContain("ui://sluice/chart.html");
        expect((await client.read("ui://sluice/chart.html")).contents).toEqual([
          {
            uri: "ui://sluice/chart.html",
            mimeType: "text/html;profile=mcp-app",
            text: "<!doctype html><title>Chart</title>",
            _meta: { ui: { csp: { connectDomains: [], resourceDomains: [] }, prefersBorder: false } },
          },
        ]);
        rmSync(chartAppFile);
        await expect(client.read("ui://sluice/chart.html")).rejects.toThrow(
          "The chart app is not built. Run `npm run setup`. Charts are also in the structured content of each result, and as a table in its text.",
        );
      } finally {
        rmSync(directory, { recursive: true });
      }
    },
  );
});
