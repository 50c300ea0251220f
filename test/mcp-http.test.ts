import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openDataFiles } from "../src/data/files/open-data-files.ts";
import { createTables } from "../src/data/tables/create-tables.ts";
import { cell, generations, openHttpClient, textOf } from "./fixtures/mcp-clients.ts";
import { openMcpEndpoint, type TestEndpoint } from "./fixtures/open-mcp-endpoint.ts";

const HANG_MS = 180_000;

test("makes code mode once for all clients and calls", async () => {
  const made = vi.fn<() => void>();
  await using opened = await openMcpEndpoint({
    parts: ({ runtime }) => {
      const { createCodeModeTools } = runtime;
      return { runtime: { ...runtime, createCodeModeTools: (options) => (made(), createCodeModeTools(options)) } };
    },
  });
  const perRequest = vi.spyOn(opened.configured.runtime, "createCodeMode");
  for (const generation of generations) {
    await using client = await openHttpClient(generation, opened.url);
    for (const query of ["price", ""]) expect(textOf(await client.call("search", { query }))).toMatchObject({ found: "0 of 0 tools" });
  }
  expect(made).toHaveBeenCalledTimes(1);
  expect(perRequest).not.toHaveBeenCalled();
});

describe("the MCP endpoint over HTTP", () => {
  let opened: TestEndpoint;
  beforeAll(async () => {
    // A cell that is not cancelled would go on for longer than the test waits.
    opened = await openMcpEndpoint({ configuration: { limits: { sandbox: { cellTimeoutMs: 900_000 } } } });
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test("gives a client of 2025-11-25 one session, in which data and variables live on", { timeout: HANG_MS }, async () => {
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
    "gives a client of 2026-07-28 a handle that it can pass back, and a sandbox of its own for each call without",
    { timeout: HANG_MS },
    async () => {
      await using client = await openHttpClient("2026-07-28", opened.url);
      const stored = textOf(await client.call("store_data", { name: "prices", data: [{ price: 1 }, { price: 2.5 }] }));
      const { session } = stored as { session: string };
      expect(stored).toMatchObject({
        alias: "prices",
        state_scope: "request",
        session_note: `No session was passed: the sandbox of this call is gone, its aliases are kept for 60 minutes. Pass "session": "${session}" with the next call to use them, and to keep variables from then on.`,
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

  test.each(generations)("keeps tenants and sessions apart, for clients of %s", { timeout: HANG_MS }, async (generation) => {
    await using one = await openHttpClient(generation, opened.url, { "x-tenant": "one" });
    await using other = await openHttpClient(generation, opened.url, { "x-tenant": "other" });
    const { session } = textOf(await one.call("store_data", { name: "secret", data: [{ n: 1 }] }));
    const handle = session === undefined ? {} : { session };
    expect(textOf(await one.call("list_data", handle))).toMatchObject({ data: [{ alias: "secret" }] });
    const seen = textOf(await other.call("list_data", handle));
    if (session === undefined) expect(seen).toMatchObject({ data: [] });
    else
      expect(seen).toEqual({
        status: "refused",
        error: {
          error_kind: "precondition_failed",
          tool: "list_data",
          summary: "There is no session with this handle: it ended, or was not used for too long.",
          details: [{ path: "session", issue: "is not known", received_type: "string" }],
          hints: ["Call without session to begin a new one, and store or fetch the data again."],
          examples: [],
          error_code: "SESSION_UNKNOWN",
          retryable: false,
          _envelope_version: 1,
        },
      });

    // Another session of the same tenant sees as little.
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

  test("lists data in pages, and takes no cursor but its own", { timeout: HANG_MS }, async () => {
    await using client = await openHttpClient("2025-11-25", opened.url);
    const names = Array.from({ length: 103 }, (_, n) => `data_${n}`);
    for (const name of names) await client.call("store_data", { name, data: [1] });
    const uris = names.map((name) => `sluice://data/${name}`);
    expect((await client.resources()).filter((uri) => uri.startsWith("sluice://data/"))).toEqual(uris.slice(0, 100));
    expect(await client.resources("100")).toEqual(uris.slice(100));
    for (const cursor of ["", "0", "7", "200", "-100", "1e2x"])
      await expect(client.resources(cursor)).rejects.toThrow(`The cursor ${JSON.stringify(cursor)} is none that a list here gave.`);
  });

  test("does not let another tenant in by the number of a session", { timeout: HANG_MS }, async () => {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const post = (body: object, more: Record<string, string>): Promise<Response> =>
      fetch(opened.url, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body) });
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } };
    const begun = await post({ jsonrpc: "2.0", id: 1, method: "initialize", params }, { "x-tenant": "one" });
    const id = begun.headers.get("mcp-session-id") ?? "";
    await begun.text();
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
        error: { code: -32_001, message: "Session not found: it ended, or was not used for too long. Send initialize to begin a new one." },
        id: null,
      },
    ]);
    const without = await post(list, { "x-tenant": "one" });
    expect(without.status).toBe(400);
  });

  test.each(generations)("ends a cell in the middle when a client of %s cancels its call", { timeout: HANG_MS }, async (generation) => {
    await using client = await openHttpClient(generation, opened.url);
    const { session } = textOf(await client.call("store_data", { name: "rows", data: [1] }));
    const handle = session === undefined ? {} : { session };
    const stop = new AbortController();
    const code = "print('in the middle', flush=True)\nwhile True: pass";
    const running = client.call(
      "code_interpreter",
      { ...cell(code, ["rows"]), ...handle },
      {
        signal: stop.signal,
        onprogress: ({ message }) => message === "in the middle" && stop.abort(new Error("enough")),
      },
    );
    await expect(running).rejects.toThrow("enough");
    // Cells of a session run one after the other: this one has its turn because the other is over, long before its time is.
    const after = await client.call("code_interpreter", { ...cell("set_result('next')", ["rows"]), ...handle });
    expect(textOf(after)).toMatchObject({ status: "ok", result: "next" });
  });

  test.each(generations)(
    "ends the reading of a large file in the middle when a client of %s cancels its call",
    { timeout: HANG_MS },
    async (generation) => {
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
    },
  );

  test.each(generations)("shows data and pictures of a client of %s to nobody else", { timeout: HANG_MS }, async (generation) => {
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
    "gives clients of %s the program that draws charts, and names it on the tools that make them",
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
          "The program that draws charts is not built here. Run `npm run setup`. Charts are also in the structured content of each result, and as a table in its text.",
        );
      } finally {
        rmSync(directory, { recursive: true });
      }
    },
  );
});
