import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UsageError } from "../errors/sluice-error.ts";
import { defaultExecuteLimits } from "../execute/engine.ts";
import { defaultMcpLimits } from "../tools/mcp/mcp-source-options.ts";
import { defaultLimits } from "../sandbox/limits.ts";
import type { Environment, LoadedConfiguration } from "./loaded-configuration.ts";
import { loadConfiguration } from "./load-configuration.ts";

let directory = "";
beforeEach(async () => {
  directory = await realpath(await mkdtemp(path.join(tmpdir(), "sluice-config-")));
});
afterEach(() => rm(directory, { recursive: true }));

const defaultCallLimits = { ...defaultMcpLimits, maxConcurrentCalls: 16 };

const file = (): string => path.join(directory, "sluice.config.json");

async function load(content: unknown, environment: Environment = {}): Promise<LoadedConfiguration> {
  await writeFile(file(), typeof content === "string" ? content : JSON.stringify(content));
  return await loadConfiguration({ workingDirectory: directory, environment });
}

async function problemsOf(content: unknown, environment: Environment = {}): Promise<string[]> {
  const error = await load(content, environment).catch((reason: unknown) => reason);
  if (!(error instanceof UsageError)) throw new Error(`expected a UsageError, got ${String(error)}`);
  return error.message.split("\n");
}

const full = {
  $schema: "https://example.com/schema.json",
  mcpServers: {
    local: {
      command: "node",
      args: ["server.js", "--token", "${TOKEN}"],
      env: { KEY: "${TOKEN}-${OTHER}" },
      cwd: "sub",
      expose: true,
      allow: ["drop", "*"],
    },
    remote: { url: "https://example.com/mcp", headers: { Authorization: "Bearer ${TOKEN}" } },
  },
  model: "script:demo.json",
  models: {
    "openai-compatible": { baseUrl: "http://127.0.0.1:11434/v1", structuredOutputs: true },
    openai: { api: "chat", apiKey: "${OTHER}" },
  },
  sandbox: { driver: "bubblewrap", poolSize: 0, maxSandboxes: 3, queueDeadlineMs: 5 },
  limits: { sandbox: { cellTimeoutMs: 1000 }, execute: { toolCalls: 7 }, mcp: { timeoutMs: 9 } },
  execute: { engine: "monty", isolation: "process-only" },
  artifacts: { directory: "kept" },
  session: { identities: { choices: { acme: { value: "${TOKEN}" } } } },
  budgets: { steps: 3, tokens: 1000, cost: { maximum: 2, inputPerMillionTokens: 3, outputPerMillionTokens: 15 } },
  tools: { allow: ["a__b", "c__*"], toolPolicy: "read-only" },
  auth: { tokens: [{ tenant: "t", sha256: "0".repeat(64), operator: true }] },
  server: { allowedHosts: ["sluice.example"], maxTurns: 2, retention: { days: 1 } },
};

describe("loadConfiguration", () => {
  it("is all defaults when there is no file", async () => {
    const { configuration, path: found, origins } = await loadConfiguration({ workingDirectory: directory, environment: {} });
    expect(found).toBeNull();
    expect(configuration).toEqual({
      mcpServers: {},
      model: null,
      models: {},
      sandbox: { driver: "auto", poolSize: 1, queueDeadlineMs: 60_000 },
      limits: { sandbox: defaultLimits, execute: defaultExecuteLimits, mcp: defaultCallLimits },
      execute: { engine: "auto", isolation: "namespaces" },
      artifacts: { directory: path.join(homedir(), ".local/share/sluice/artifacts") },
      session: null,
      budgets: { steps: 10, chartBoost: 4, wallMs: 300_000, previewBytes: 4096, stepBytes: 24_576 },
      tools: { allow: [], toolPolicy: "annotations" },
      auth: { tokens: [] },
      server: {
        allowedHosts: [],
        maxTurns: 16,
        maxTurnsPerClient: 8,
        maxQueuedPerClient: 100,
        queueDeadlineMs: 60_000,
        drainMs: 10_000,
        uploadBytes: 268_435_456,
        retention: { days: 30, maxBytes: 10_737_418_240 },
      },
    });
    expect(new Set(Object.values(origins).map(({ from }) => from))).toEqual(new Set(["default"]));
    expect(Object.keys(origins)).toEqual(
      expect.arrayContaining(["mcpServers", "model", "limits.execute.toolCalls", "tools.allow", "session"]),
    );
  });

  it("takes every key that there is, expands references and counts paths from the file", async () => {
    const { configuration, path: found, origins } = await load(full, { TOKEN: "tee", OTHER: "oh" });
    expect(found).toBe(file());
    expect(configuration).toEqual({
      mcpServers: {
        local: {
          command: "node",
          args: ["server.js", "--token", "tee"],
          env: { KEY: "tee-oh" },
          cwd: path.join(directory, "sub"),
          expose: true,
          allow: ["drop", "*"],
        },
        remote: { url: "https://example.com/mcp", headers: { Authorization: "Bearer tee" } },
      },
      model: `script:${path.join(directory, "demo.json")}`,
      models: {
        "openai-compatible": { baseUrl: "http://127.0.0.1:11434/v1", structuredOutputs: true },
        openai: { api: "chat", apiKey: "oh" },
      },
      sandbox: { driver: "bubblewrap", poolSize: 0, maxSandboxes: 3, queueDeadlineMs: 5 },
      limits: {
        sandbox: { ...defaultLimits, cellTimeoutMs: 1000 },
        execute: { ...defaultExecuteLimits, toolCalls: 7 },
        mcp: { ...defaultCallLimits, timeoutMs: 9 },
      },
      execute: { engine: "monty", isolation: "process-only" },
      artifacts: { directory: path.join(directory, "kept") },
      session: { identities: { choices: { acme: { value: "tee" } } } },
      budgets: {
        steps: 3,
        chartBoost: 4,
        wallMs: 300_000,
        previewBytes: 4096,
        stepBytes: 24_576,
        tokens: 1000,
        cost: { maximum: 2, inputPerMillionTokens: 3, outputPerMillionTokens: 15 },
      },
      tools: { allow: ["a__b", "c__*"], toolPolicy: "read-only" },
      auth: { tokens: [{ tenant: "t", sha256: "0".repeat(64), operator: true }] },
      server: {
        allowedHosts: ["sluice.example"],
        maxTurns: 2,
        maxTurnsPerClient: 8,
        maxQueuedPerClient: 100,
        queueDeadlineMs: 60_000,
        drainMs: 10_000,
        uploadBytes: 268_435_456,
        retention: { days: 1, maxBytes: 10_737_418_240 },
      },
    });
    expect(origins).toMatchObject({
      "mcpServers.local.args[0]": { from: "file" },
      "mcpServers.local.args[2]": { from: "environment", variables: ["TOKEN"], written: "${TOKEN}" },
      "mcpServers.local.env.KEY": { from: "environment", variables: ["TOKEN", "OTHER"], written: "${TOKEN}-${OTHER}" },
      "budgets.steps": { from: "file" },
      "budgets.wallMs": { from: "default" },
      "limits.sandbox.cellTimeoutMs": { from: "file" },
      "limits.sandbox.processes": { from: "default" },
      "models.openai.apiKey": { from: "environment", variables: ["OTHER"], written: "${OTHER}" },
    });
  });

  it("finds the file upward from the working directory, the nearest first", async () => {
    const deep = path.join(directory, "a/b");
    await mkdir(deep, { recursive: true });
    await writeFile(file(), '{"model": "demo"}');
    expect((await loadConfiguration({ workingDirectory: deep, environment: {} })).path).toBe(file());
    await writeFile(path.join(directory, "a/sluice.config.json"), "{}");
    const nearer = await loadConfiguration({ workingDirectory: deep, environment: {} });
    expect([nearer.path, nearer.configuration.model]).toEqual([path.join(directory, "a/sluice.config.json"), null]);
  });

  it("takes the given file and looks for no other", async () => {
    await writeFile(path.join(directory, "other.json"), '\uFEFF{"model": "demo"}');
    const given = await loadConfiguration({ file: "other.json", workingDirectory: directory, environment: {} });
    expect([given.path, given.configuration.model]).toEqual([path.join(directory, "other.json"), "demo"]);
    await expect(loadConfiguration({ file: "none.json", workingDirectory: directory, environment: {} })).rejects.toThrow(
      `The configuration cannot be read from ${path.join(directory, "none.json")}: there is no such file.`,
    );
  });

  it("refuses a file that was come upon and that everybody may write, and takes it when it is given", async () => {
    await writeFile(file(), "{}");
    await chmod(file(), 0o666);
    await expect(loadConfiguration({ workingDirectory: directory, environment: {} })).rejects.toThrow(
      `${file()} was found and not read: everybody may write to it, and a configuration starts programs.`,
    );
    expect((await loadConfiguration({ file: file(), workingDirectory: directory, environment: {} })).path).toBe(file());
  });

  it("names every wrong key with its path and the nearest right one, all at once", async () => {
    const wrong = {
      mcpserver: {},
      mcpServers: { market: { comand: "node", arg: [] }, both: { command: "x", url: "http://h/" }, web: { url: "http://h/", env: {} } },
      limits: { sandbox: { cellTimeoutMS: 5 }, cellTimeoutMs: 1 },
      session: { identity: {}, regions: { choises: {}, choices: {} } },
      zebra: 1,
    };
    expect(await problemsOf(wrong)).toEqual([
      `11 things are wrong in ${file()}:`,
      '  mcpServers.market.comand: is not a known field. Did you mean "command"?',
      '  mcpServers.market.arg: is not a known field. Did you mean "args"?',
      "  mcpServers.market: needs a command, or a url.",
      "  mcpServers.both: has both a command and a url: one of them has to go.",
      "  mcpServers.web.env: is for a server with a command.",
      '  limits.sandbox.cellTimeoutMS: is not a known field. Did you mean "cellTimeoutMs"?',
      '  limits.cellTimeoutMs: is not a known field. Did you mean "limits.sandbox.cellTimeoutMs"?',
      '  session.regions.choises: is not a known field. Did you mean "choices"?',
      "  session.identity: is not a known field. Known fields: identities, regions, profiles, identityRequired.",
      '  mcpserver: is not a known field. Did you mean "mcpServers"?',
      "  zebra: is not a known field. Known fields: $schema, mcpServers, model, models, sandbox, limits, execute, artifacts, session, budgets, tools, auth, server.",
    ]);
  });

  it("names wrong values with their path and what was got", async () => {
    const wrong = {
      model: "antropic:x",
      sandbox: { driver: "gvizor", poolSize: -1, maxSandboxes: "three" },
      limits: { sandbox: { cellTimeoutMs: 1e12, memoryBytes: 1.5, processes: null } },
      mcpServers: { a: { url: "ftp://h/" }, b: { command: 5, allow: ["x*"] }, c: [] },
      tools: { allow: "all" },
      auth: { tokens: [{ tenant: "t", sha256: "a-secret" }] },
      budgets: { cost: { maximum: 0, inputPerMillionTokens: 1 } },
    };
    expect(await problemsOf(wrong)).toEqual([
      `15 things are wrong in ${file()}:`,
      "  mcpServers.a.url: must be a URL that begins with http:// or https://.",
      "  mcpServers.b.command: must be a string, not 5.",
      "  mcpServers.b.allow[0]: must be the name of a tool, or * for all of this server's.",
      "  mcpServers.c: must be an object, not an array.",
      '  model: Unknown model provider "antropic". Did you mean anthropic:x? A model is anthropic:MODEL, openai:MODEL, openai-compatible:MODEL, gateway:PROVIDER/MODEL, PROVIDER/MODEL (AI Gateway), script:FILE.json or demo.',
      '  sandbox.driver: must be one of "auto", "gvisor", "gvisor-rootless", "bubblewrap", not "gvizor". Did you mean "gvisor"?',
      "  sandbox.poolSize: must be at least 0, not -1.",
      '  sandbox.maxSandboxes: must be a number, not "three".',
      "  limits.sandbox.cellTimeoutMs: must be at most 2147483647, not 1000000000000.",
      "  limits.sandbox.memoryBytes: must be an integer, not 1.5.",
      "  limits.sandbox.processes: must be a number, not null.",
      "  budgets.cost.maximum: must be more than 0, not 0.",
      "  budgets.cost.outputPerMillionTokens: is missing.",
      '  tools.allow: must be an array, not "all".',
      "  auth.tokens[0].sha256: must be 64 digits of lower-case hexadecimal.",
    ]);
  });

  it("names the path and the variable of a reference that cannot be expanded, and does not show what others were expanded to", async () => {
    const wrong = {
      mcpServers: { a: { command: "x", env: { KEY: "${MISSING_ONE}", B: "${toString}" }, args: ["${}", "${A:-b}", "${open"] } },
      model: "${ALSO_MISSING}",
      sandbox: { driver: "${SECRET}" },
      models: { openai: { apiKey: 5, headers: { H: true } } },
    };
    expect(await problemsOf(wrong, { SECRET: "hunter2" })).toEqual([
      `9 things are wrong in ${file()}:`,
      "  mcpServers.a.env.KEY: the variable MISSING_ONE is not set.",
      "  mcpServers.a.env.B: the variable toString is not set.",
      '  mcpServers.a.args[0]: "${}" is no reference. Write ${NAME}, or $${ for the characters themselves.',
      '  mcpServers.a.args[1]: "${A:-b}" is no reference. Write ${NAME}, or $${ for the characters themselves.',
      '  mcpServers.a.args[2]: "${open" is no reference. Write ${NAME}, or $${ for the characters themselves.',
      "  model: the variable ALSO_MISSING is not set.",
      "  models.openai.apiKey: must be a string, not 5.",
      "  models.openai.headers.H: must be a string, not true.",
      '  sandbox.driver: must be one of "auto", "gvisor", "gvisor-rootless", "bubblewrap", not a string.',
    ]);
  });

  it("leaves $${ as the characters themselves, and a single $ alone", async () => {
    const { configuration } = await load(
      { mcpServers: { a: { command: "x", args: ["$${HOME}", "$5 ${A}$${B}", "$HOME"] } } },
      { A: "${B}" },
    );
    expect(configuration.mcpServers["a"]).toMatchObject({ args: ["${HOME}", "$5 ${B}${B}", "$HOME"] });
  });

  it("is JSON only, and does not repeat the file when it is none", async () => {
    expect(await problemsOf('{"model": "demo", // why\n}')).toEqual([
      `${file()} is no JSON: Expected double-quoted property name (line 1 column 19).`,
    ]);
    expect(await problemsOf("module.exports = {secret: 1}")).toEqual([`${file()} is no JSON: it has something unexpected.`]);
    expect(await problemsOf("")).toEqual([`${file()} is no JSON: Unexpected end of JSON input.`]);
    expect(await problemsOf("[]")).toEqual([`One thing is wrong in ${file()}:`, "  the whole: must be an object, not an array."]);
    expect(await problemsOf('{"mcpServers": {"__proto__": {"command": "x"}}}')).toEqual([
      `One thing is wrong in ${file()}:`,
      "  mcpServers.__proto__: is no name that can be used here.",
    ]);
    expect(await problemsOf('{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {}}')).toEqual([
      `One thing is wrong in ${file()}:`,
      "  mcpServers: is there twice.",
    ]);
  });

  it("takes the model and the place for data from variables", async () => {
    const environment = { SLUICE_MODEL: "script:x.json", XDG_DATA_HOME: "/data" };
    const { configuration, origins } = await load({ model: "demo" }, environment);
    expect([configuration.model, configuration.artifacts.directory]).toEqual([
      `script:${path.join(directory, "x.json")}`,
      "/data/sluice/artifacts",
    ]);
    expect(origins["model"]).toEqual({ from: "environment", variables: ["SLUICE_MODEL"] });
    expect(origins["artifacts.directory"]).toEqual({ from: "environment", variables: ["XDG_DATA_HOME"] });
    expect((await load({ artifacts: { directory: "/own" } }, { SLUICE_DATA: "/data" })).origins["artifacts.directory"]).toEqual({
      from: "file",
    });
  });

  it("starts programs where the file is", async () => {
    const { configuration, origins } = await load({ mcpServers: { a: { command: "x" } } });
    expect(configuration.mcpServers["a"]).toEqual({ command: "x", cwd: directory });
    expect(origins["mcpServers.a.cwd"]).toEqual({ from: "default" });
  });
});
