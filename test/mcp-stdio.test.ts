import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { CallToolResult } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseToolError } from "../src/errors/tool-error.ts";
import { cell, generations, openStdioClient, textOf, type TestClient } from "./fixtures/mcp-clients.ts";

const HANG_MS = 240_000;

let directory: string;
const hostileName = "$(touch pwned); rm -rf ~ 'x' \u202Egnp.csv";

beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), "sluice-mcp-stdio-"));
  mkdirSync(path.join(directory, "data"));
  const rows = Array.from({ length: 1_000_000 }, (_, n) => `${n},venue_${n % 7},${(n % 1000) / 4}`);
  writeFileSync(path.join(directory, "data/big.csv"), `id,venue,amount\n${rows.join("\n")}\n9007199254740993,venue_0,0.5\n`);
  writeFileSync(path.join(directory, "data", hostileName), "a,b\n1,2\n3,4\n");
  writeFileSync(
    path.join(directory, "data/broken.csv"),
    Buffer.concat([Buffer.from('a,b\n1,"2\n'), Buffer.from([0xff, 0xfe, 0x00]), Buffer.from("x\n")]),
  );
  writeFileSync(path.join(directory, "secret.csv"), "a\n1\n");
  symlinkSync(path.join(directory, "secret.csv"), path.join(directory, "data/secret.csv"));
  // Longer than the test waits, so that only cancelling can end a cell.
  const configuration = { limits: { sandbox: { cellTimeoutMs: 900_000 } }, artifacts: { directory: path.join(directory, "artifacts") } };
  writeFileSync(path.join(directory, "sluice.config.json"), JSON.stringify(configuration));
});
afterAll(() => rmSync(directory, { recursive: true }));

describe.each(generations)("sluice mcp on stdio, with a client of %s", { timeout: HANG_MS }, (generation) => {
  let client: TestClient;
  beforeAll(async () => {
    client = await openStdioClient(generation, { args: ["--config", "sluice.config.json", "--data", "data"], cwd: directory });
  }, HANG_MS);
  afterAll(() => client.close());

  test("stores data and computes with it exactly", async () => {
    const stored = await client.call("store_data", { name: "prices", data: [{ price: 1 }, { price: 2.5 }] });
    expect(textOf(stored)).toMatchObject({ alias: "prices", _contextAlias: "prices" });
    const result = await client.call(
      "code_interpreter",
      cell("set_result({'sum': float(to_frame(prices)['price'].sum()), 'n': 2**70})", ["prices"]),
    );
    expect(result.isError).toBeUndefined();
    expect(textOf(result)).toMatchObject({ status: "ok", result: { sum: 3.5 }, resultAlias: "result_1" });
    expect(result.content[0]).toMatchObject({ type: "text", text: expect.stringContaining('"n":1180591620717411303424}') as string });
    expect(result.structuredContent).toEqual(textOf(result));
  });

  test("stops a running cell when its call is cancelled and restores the state before it", async () => {
    await client.call("code_interpreter", cell("kept = 41\nset_result(kept)", ["prices"]));
    const stop = new AbortController();
    const code = "print('running', flush=True)\nkept = 0\nwhile True: pass";
    const running = client.call("code_interpreter", cell(code, ["prices"]), {
      signal: stop.signal,
      onprogress: ({ message }) => message === "running" && stop.abort(new Error("enough")),
    });
    await expect(running).rejects.toThrow("enough");
    // Cells run one at a time, so this one can only run because the other was stopped. The earlier cells are cheap enough to be replayed.
    const after = await client.call("code_interpreter", cell("set_result(kept + 1)", ["prices"]));
    expect(textOf(after)).toMatchObject({ status: "ok", result: 42 });
  });

  test("returns a figure as an image with its alt text, readable again by its URI", async () => {
    const code =
      "plt.plot([1, 2, 3])\nplt.title('Prices')\nsave_figure('A line that rises from one to three', title='Rising')\nset_result(1)";
    const result = await client.call("code_interpreter", cell(code, ["prices"], ["image"]));
    const picture = result.content.find((block) => block.type === "image");
    const bytes = Buffer.from(picture?.data ?? "", "base64");
    expect(bytes.subarray(1, 4).toString()).toBe("PNG");
    const url = `sluice://artifacts/${createHash("sha256").update(bytes).digest("hex")}`;
    expect(picture).toMatchObject({ mimeType: "image/png", _meta: { alt: "A line that rises from one to three", title: "Rising", url } });
    expect(textOf(result)).toMatchObject({ artifacts: [{ kind: "image", alt: "A line that rises from one to three", url }] });
    expect(await client.read(url)).toMatchObject({ contents: [{ uri: url, mimeType: "image/png", blob: picture?.data }] });
  });

  test("returns a chart as structured content and as a table", async () => {
    const spec = { type: "bar", xKey: "venue", series: [{ key: "total" }] };
    await client.call("store_data", { name: "totals", data: Array.from({ length: 25 }, (_, n) => ({ venue: `v|${n}`, total: n })) });
    const result = await client.call("render_chart", { alias: "totals", spec, title: "Totals" });
    expect(result.structuredContent).toMatchObject({
      status: "ok",
      charts: [{ kind: "chart", title: "Totals", spec, data: { length: 25 } }],
    });
    const [{ url } = { url: "" }] = textOf(result)["artifacts"] as { url: string }[];
    const table = result.content[1];
    const lines = table?.type === "text" ? table.text.split("\n") : [];
    expect(lines.slice(0, 5)).toEqual(["Totals (bar chart, 25 rows)", "", "| venue | total |", "| --- | --- |", "| v\\|0 | 0 |"]);
    expect(lines.slice(-2)).toEqual(["", `Not shown: 5 more rows. The complete data is in ${url}.`]);
    const [chart] = (await client.read(url)).contents;
    expect(JSON.parse(chart !== undefined && "text" in chart ? chart.text : "")).toMatchObject({ spec, data: { length: 25 } });
  });

  test("links to a chart of more than 256 KB, which can be read", async () => {
    const data = Array.from({ length: 4000 }, (_, n) => ({ venue: `${"v".repeat(80)}${n}`, total: n }));
    await client.call("store_data", { name: "many", data });
    const spec = { type: "bar", xKey: "venue", series: [{ key: "total" }] };
    const result = await client.call("render_chart", { alias: "many", spec, title: "Many" });
    const [{ url } = { url: "" }] = textOf(result)["artifacts"] as { url: string }[];
    expect(result.structuredContent).not.toHaveProperty("charts");
    const [, table, link] = result.content;
    expect(table).toMatchObject({ type: "text", text: expect.stringContaining("3980 more rows") });
    expect(link).toMatchObject({ type: "resource_link", uri: url, title: "Many", mimeType: "application/json" });
    const { description, size } = link as { description: string; size: number };
    expect(description).toContain(`(${size} bytes; a result includes at most 262144 bytes of pictures and charts: read the resource)`);
    const [chart] = (await client.read(url)).contents;
    const text = chart !== undefined && "text" in chart ? chart.text : "";
    expect([text.length, (JSON.parse(text) as { data: unknown[] }).data.length]).toEqual([size, 4000]);
  });

  test("links to a large result that can be read in pages to its end", async () => {
    const created = await client.call(
      "code_interpreter",
      cell("set_result([{'n': n, 'text': 'row %d' % n} for n in range(1200)])", ["prices"]),
    );
    const { resultAlias } = textOf(created) as { resultAlias: string };
    const link = created.content.find((block) => block.type === "resource_link");
    expect(link).toMatchObject({ uri: `sluice://data/${resultAlias}`, name: resultAlias, mimeType: "application/json" });
    const read: number[] = [];
    let pages = 0;
    for (let uri: string | null = link?.uri ?? null; uri !== null; pages += 1) {
      const [page] = (await client.read(uri)).contents;
      const { next, rows } = JSON.parse(page !== undefined && "text" in page ? page.text : "") as {
        next: string | null;
        rows: { n: number }[];
      };
      read.push(...rows.map(({ n }) => n));
      uri = next;
    }
    expect(read).toEqual(Array.from({ length: 1200 }, (_, n) => n));
    expect(pages).toBeGreaterThan(1);
    expect(await client.resources()).toContain(`sluice://data/${resultAlias}`);
    await expect(client.read("sluice://data/no_such_alias")).rejects.toThrow("sluice://data/no_such_alias");
  });

  test("reports the progress of a running cell", async () => {
    const reports: { progress: number; message?: string | undefined }[] = [];
    const code = "import time\nfor step in range(4):\n    print('step', step, flush=True)\n    time.sleep(0.5)\nset_result(step)";
    const result = await client.call("code_interpreter", cell(code, ["prices"]), { onprogress: (report) => reports.push(report) });
    expect(textOf(result)).toMatchObject({ status: "ok", result: 3 });
    expect(reports[0]).toMatchObject({ message: "started" });
    expect(reports.filter(({ message }) => /^step \d$/.test(message ?? "")).length).toBeGreaterThan(0);
    const values = reports.map(({ progress }) => progress);
    expect(values).toEqual([...new Set(values)].sort((a, b) => a - b));
  });

  test("returns the error of a failed cell and the result of the edit that fixes it", async () => {
    const failed = await client.call("code_interpreter", cell("value = 1 / 0\nset_result(value)", ["prices"]));
    expect(failed.isError).toBe(true);
    expect(textOf(failed)).toMatchObject({ status: "python_error", error: { error_kind: "sandbox_runtime", error_code: "PYTHON_ERROR" } });
    expect(parseToolError(textOf(failed)["error"])).not.toBeNull();
    const fixed = await client.call("python_code_edit", { edits: [{ oldText: "1 / 0", newText: "1 / 4" }] });
    expect(textOf(fixed)).toMatchObject({ status: "ok", result: 0.25 });
  });

  test.each([
    ["code_interpreter", { code: 1 }, "INPUT_VALIDATION_FAILED"],
    ["python_code_edit", { edits: "all" }, "INPUT_VALIDATION_FAILED"],
    ["render_chart", { alias: "prices" }, "CHART_INVALID"],
    ["store_data", {}, null],
    ["read_data", { alias: "prices", offset: "one" }, null],
    ["search", { limit: 0 }, "SCHEMA_MINIMUM"],
    ["execute", {}, "SCHEMA_REQUIRED"],
    ["no_such_tool", {}, "TOOL_NOT_FOUND"],
  ])("returns a tool error for a call of %s that breaks the published schema", async (name, args, code) => {
    const result = await client.call(name, args);
    expect(result.isError).toBe(true);
    const toolError = parseToolError(textOf(result)["error"]);
    expect(toolError).toMatchObject({ tool: name, _envelope_version: 1 });
    if (code !== null) expect(toolError?.error_code).toBe(code);
    else expect(toolError?.error_kind).toBe("mcp_input_validation");
  });

  test("lists the given files, also one with a hostile name, and computes over 20 MB", async () => {
    const { data, leftOut } = textOf(await client.call("list_data")) as {
      data: { alias: string; source: string }[];
      leftOut: unknown;
    };
    expect(leftOut).toEqual([{ path: "data/secret.csv", why: "it is a symbolic link that points outside the given folder" }]);
    const files = data.filter(({ source }) => source === "file");
    expect(files.map(({ alias }) => alias).every((alias) => /^[A-Za-z_]\w*$/.test(alias))).toBe(true);
    expect(files).toHaveLength(3);
    expect(JSON.stringify(files)).not.toContain("\u202E");
    const hostile = files.find(({ alias }) => alias.includes("touch"))?.alias ?? "";
    const summed = await client.call("code_interpreter", cell(`set_result(int(${hostile}['b'].sum()))`, [hostile]));
    expect(textOf(summed)).toMatchObject({ status: "ok", result: 6 });
    const big = await client.call("code_interpreter", cell("set_result({'rows': len(big), 'last': int(big['id'].iloc[-1])})", ["big"]));
    expect(textOf(big)).toMatchObject({ status: "ok", result: { rows: 1_000_001 } });
    expect(big.content[0]).toMatchObject({ text: expect.stringContaining('"last":9007199254740993') as string });
    const page = await client.call("read_data", { alias: "big", filter: [{ column: "amount", op: "eq", value: 0.5 }], limit: 2 });
    expect(textOf(page)).toMatchObject({ total: 1_000_001, matched: 1001, rows: [{ id: 2 }, { id: 1002 }] });
  });

  test("reads a file again that changed on disk and says so", async () => {
    const file = path.join(directory, "data", hostileName);
    const { data } = textOf<{ data: { alias: string }[] }>(await client.call("list_data"));
    const alias = data.find((item) => item.alias.includes("touch"))?.alias ?? "";
    const sum = (): Promise<CallToolResult> => client.call("code_interpreter", cell(`set_result(int(${alias}['b'].sum()))`, [alias]));
    expect(textOf(await sum())).toMatchObject({ status: "ok", result: 6 });
    try {
      writeFileSync(file, "a,b\n1,2\n3,4\n5,60\n");
      const changed = await sum();
      expect(textOf(changed)).toMatchObject({ status: "ok", result: 66 });
      expect(textOf(changed)["notes"]).toEqual([
        `Changed on disk since an earlier cell used them: ${alias} (now 17 bytes). This cell had the new content; variables of earlier cells still hold values from the old content.`,
      ]);
      expect(textOf(await client.call("read_data", { alias }))).toMatchObject({ total: 3 });
    } finally {
      writeFileSync(file, "a,b\n1,2\n3,4\n");
    }
    expect(textOf(await sum())).toMatchObject({ status: "ok", result: 6 });
  });

  test("reports what is wrong with a damaged file and keeps working", async () => {
    const result = await client.call("code_interpreter", cell("set_result(len(broken))", ["broken"]));
    expect(result.isError).toBe(true);
    expect(parseToolError(textOf(result)["error"])).toMatchObject({ error_kind: "sandbox_runtime" });
    const page = await client.call("read_data", { alias: "broken" });
    expect(page.isError).toBe(true);
    expect(parseToolError(textOf(page)["error"])).not.toBeNull();
    const after = await client.call("code_interpreter", cell("set_result('here')", ["prices"]));
    expect(textOf(after)).toMatchObject({ status: "ok", result: "here" });
  });

  test("writes only its start-up lines to standard error", () => {
    expect(
      client
        .stderr()
        .split("\n")
        .filter((line) => line !== ""),
    ).toEqual([
      "sluice mcp: data: 3 files",
      "sluice mcp: left out: data/secret.csv: it is a symbolic link that points outside the given folder",
      expect.stringMatching(/^sluice mcp: sandbox: (?:gvisor|gvisor-rootless|bubblewrap)$/),
    ]);
  });
});
