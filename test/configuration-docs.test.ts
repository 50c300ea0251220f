import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { configurationSchema } from "../src/config/configuration-schema.ts";
import { loadConfiguration, type LoadedConfiguration } from "../src/config/load-configuration.ts";
import { listLeaves } from "../src/config/trace-origins.ts";
import { toPathText } from "../src/errors/argument-path.ts";
import { writeDocument } from "../scripts/write-docs.ts";
import { parseModelScript } from "../src/models/model-script.ts";

const root = path.join(import.meta.dirname, "..");
const page = readFileSync(path.join(root, "docs/configuration.md"), "utf8");
const models = readFileSync(path.join(root, "docs/models.md"), "utf8");

function fencesOf(text: string, language: string): string[] {
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].filter(([, name]) => name === language).map(([, , body = ""]) => body);
}

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "sluice-docs-"));
});
afterAll(() => rm(directory, { recursive: true }));

async function load(text: string): Promise<LoadedConfiguration> {
  const file = path.join(directory, "sluice.config.json");
  await writeFile(file, text);
  const environment = { MARKET_KEY: "a", ADS_TOKEN: "b", TEAM_ANTHROPIC_KEY: "c", MARKET_TOKEN: "d" };
  return await loadConfiguration({ file, workingDirectory: directory, environment });
}

describe("docs/configuration.md", () => {
  it("has an example that loads", async () => {
    const { configuration } = await load(fencesOf(page, "json")[0]!);
    expect([configuration.budgets.steps, configuration.limits.sandbox.cellTimeoutMs]).toEqual([8, 30_000]);
  });

  it("shows lines that `sluice config` prints for the example", async () => {
    await load(fencesOf(page, "json")[0]!);
    const env = { ...process.env, MARKET_KEY: "a", ADS_TOKEN: "b" };
    const printed = execFileSync(path.join(root, "bin/sluice"), ["config"], { cwd: directory, env, encoding: "utf8" });
    const linesOf = (text: string): string[] =>
      text
        .trim()
        .split("\n")
        .map((line) => line.replaceAll(/ +/g, " "));
    const shown = fencesOf(page, "text").find((text) => text.includes("MARKET_KEY"))!;
    expect(linesOf(shown).filter((line) => !linesOf(printed).includes(line))).toEqual([]);
  });

  it("shows the real error messages", async () => {
    const wrong =
      '{"mcpServers": {"market": {"comand": "x", "url": "http://h/"}}, "limits": {"cellTimeoutMs": 1}, "sandbox": {"poolSize": "two"}}';
    const error = await load(wrong).catch((reason: unknown) => reason as Error);
    const reported = (error as Error).message.split("\n").slice(1);
    const shown = fencesOf(page, "text")
      .find((text) => text.includes("comand"))!
      .split("\n")
      .slice(1, -1);
    expect([...reported].sort()).toEqual([...shown].sort());
  });

  it("contains the table that scripts/write-docs.ts generates from the schema", async () => {
    expect(page).toBe(await writeDocument("docs/configuration.md"));
  });

  it("names every key of the schema", () => {
    const named = new Set([...page.matchAll(/`([^`\n]+)`/g)].flatMap(([, text = ""]) => text.split(/[.\s,]+/)));
    expect(
      keysOf(z.toJSONSchema(configurationSchema, { io: "input", unrepresentable: "any" })).filter(
        (key) => !named.has(key) && !identityKeys.has(key),
      ),
    ).toEqual([]);
  });

  it("gives the default of every number and choice", async () => {
    const { configuration } = await load("{}");
    const { artifacts: _, mcpServers: __, model: ___, models: ____, session: _____, ...rest } = configuration;
    const missing = listLeaves(rest)
      .map(({ path: at, value }) =>
        typeof value === "number" ? `| \`${toPathText(at)}\` | ${value} |` : `| \`${toPathText(at)}\` | \`${JSON.stringify(value)}\` |`,
      )
      .filter((row) => !page.includes(row));
    expect(missing).toEqual([]);
  });
});

/** These keys are documented in docs/identity.md. */
const identityKeys = new Set(["choices", "rides", "value", "description", "as", "name", "servers"]);

function keysOf(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {}, additionalProperties, items } = schema as Record<string, object>;
  return [
    ...Object.entries(properties).flatMap(([key, value]) => [key, ...keysOf(value)]),
    ...keysOf(additionalProperties),
    ...keysOf(items),
  ];
}

describe("docs/models.md", () => {
  it("has a configuration that loads and a valid script", async () => {
    const [configuration, script] = fencesOf(models, "json") as [string, string];
    expect((await load(configuration)).configuration.model).toBe("openai-compatible:llama3.3");
    expect(parseModelScript(script, "docs/models.md").steps).toHaveLength(3);
  });
});

describe("docs/mcp-servers.md and docs/identity.md", () => {
  const exampleOf = (name: string): string => fencesOf(readFileSync(path.join(root, "docs", name), "utf8"), "json")[0]!;

  it("have configurations that load", async () => {
    const servers = (await load(exampleOf("mcp-servers.md"))).configuration.mcpServers;
    expect(Object.keys(servers)).toEqual(["ads", "market"]);
    const { session } = (await load(`{"session": ${exampleOf("identity.md")}}`)).configuration;
    expect(Object.keys(session!.identities!.choices)).toEqual(["acme-eu", "acme-us"]);
  });
});
