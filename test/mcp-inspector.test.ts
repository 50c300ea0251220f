import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cell } from "./fixtures/mcp-clients.ts";
import { openMcpEndpoint, type TestEndpoint } from "./fixtures/open-mcp-endpoint.ts";

const HANG_MS = 300_000;
const root = path.resolve(import.meta.dirname, "..");
const inspector = path.join(root, "node_modules/.bin/mcp-inspector");

const session = { identities: { choices: { acme: {} } }, regions: { choices: { eu: {} } }, profiles: { choices: { shop: {} } } };

/** One valid call of every tool. They run in this order on one connection. */
const calls: readonly (readonly [string, Record<string, unknown>])[] = [
  [
    "store_data",
    {
      name: "rows",
      data: [
        { day: "Mon", n: 1 },
        { day: "Tue", n: 2 },
      ],
    },
  ],
  ["list_data", {}],
  ["read_data", { alias: "rows" }],
  ["code_interpreter", cell("set_result(int(to_frame(rows)['n'].sum()))", ["rows"])],
  ["python_code_edit", { edits: [{ oldText: ".sum()", newText: ".max()" }] }],
  ["render_chart", { alias: "rows", spec: { type: "bar", xKey: "day", series: [{ key: "n" }] } }],
  ["search", { query: "" }],
  ["get_schema", { tools: "anything" }],
  ["tags", {}],
  ["execute", { code: "return 1 + 1" }],
  ["get_envelope_contract", {}],
  ["get_session_state", {}],
  ["set_active_identity", { identity: "acme" }],
  ["set_region", { region: "eu" }],
  ["set_active_profile", { profile: "shop" }],
  ["get_active_context", {}],
];

describe("the command line of the MCP Inspector", { timeout: HANG_MS }, () => {
  let opened: TestEndpoint;
  let home: string;
  beforeAll(async () => {
    home = mkdtempSync(path.join(tmpdir(), "sluice-inspector-"));
    opened = await openMcpEndpoint({ configuration: { session } });
  });
  afterAll(async () => {
    await opened[Symbol.asyncDispose]();
    rmSync(home, { recursive: true, force: true });
  });

  async function inspect(...args: string[]): Promise<Record<string, unknown>> {
    const env = { PATH: process.env["PATH"] ?? "", HOME: home, MCP_INSPECTOR_SECRET_STORE: "memory" };
    const { stdout } = await promisify(execFile)(inspector, ["--cli", ...args, "--quiet", "--format", "json"], { env, maxBuffer: 2 ** 26 });
    const printed = JSON.parse(stdout) as Record<string, unknown>;
    return (printed["result"] ?? printed) as Record<string, unknown>;
  }

  test.each(["legacy", "modern"])("lists every tool over HTTP in the %s era with valid schemas", async (era) => {
    const { tools } = await inspect(opened.url, "--method", "tools/list", "--protocol-era", era, "--strict");
    expect((tools as { name: string }[]).map(({ name }) => name).sort()).toEqual(calls.map(([name]) => name).sort());
  });

  test("calls every tool", async () => {
    let handle = {};
    const answers: unknown[] = [];
    for (const [name, args] of calls) {
      const json = JSON.stringify({ ...args, ...handle });
      const method = ["--method", "tools/call", "--tool-name", name, "--tool-args-json", json];
      const { structuredContent, isError } = (await inspect(opened.url, ...method, "--protocol-era", "modern")) as {
        structuredContent: { session: string };
        isError?: boolean;
      };
      handle = { session: structuredContent.session };
      answers.push([name, isError ?? false]);
    }
    expect(answers).toEqual(calls.map(([name]) => [name, false]));
  });

  test("lists every tool of sluice mcp on stdio", async () => {
    const cache = process.env["SLUICE_CACHE"];
    const environment = cache === undefined ? [] : ["-e", `SLUICE_CACHE=${cache}`];
    const { tools } = await inspect(...environment, path.join(root, "bin/sluice"), "mcp", "--method", "tools/list");
    expect((tools as { name: string }[]).map(({ name }) => name).sort()).toEqual(calls.map(([name]) => name).sort());
  });
});
