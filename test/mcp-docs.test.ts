import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadConfiguration } from "../src/config/load-configuration.ts";

const root = path.resolve(import.meta.dirname, "..");
const page = readFileSync(path.join(root, "docs/desktop-client.md"), "utf8");
const snippets = [...page.matchAll(/^```json\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text);

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), "sluice-docs-"));
  writeFileSync(path.join(directory, "orders.csv"), "month,revenue\n2026-01,3\n2026-03,4\n");
});
afterAll(() => rmSync(directory, { recursive: true }));

test("the server entry of the page works once its paths exist", { timeout: 120_000 }, async () => {
  const written = snippets[0]!.replace("/path/to/sluice", root).replace("/path/to/data", directory);
  const { mcpServers } = JSON.parse(written) as { mcpServers: { sluice: { command: string; args: string[] } } };
  const { PATH = "", HOME = "", SLUICE_CACHE = "" } = process.env;
  const env = { PATH, HOME, ...(SLUICE_CACHE === "" ? {} : { SLUICE_CACHE }) };
  const client = new Client({ name: "docs", version: "1.0.0" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  await client.connect(new StdioClientTransport({ ...mcpServers.sluice, env, stderr: "ignore" }));
  try {
    const { tools } = await client.listTools();
    for (const { name } of tools) expect(page).toContain(`\`${name}\``);
    const { structuredContent } = await client.callTool({ name: "read_data", arguments: { alias: "orders" } }, { timeout: 110_000 });
    expect(structuredContent).toMatchObject({ alias: "orders", total: 2, columns: ["month", "revenue"] });
  } finally {
    await client.close();
  }
});

test("the configuration of the page is valid", async () => {
  const file = path.join(directory, "sluice.config.json");
  writeFileSync(file, snippets[1]!);
  const { configuration } = await loadConfiguration({ file, workingDirectory: directory, environment: { TICKETS_TOKEN: "t" } });
  expect(Object.entries(configuration.mcpServers).map(([name, { expose }]) => [name, expose])).toEqual([
    ["warehouse", true],
    ["tickets", undefined],
  ]);
});
