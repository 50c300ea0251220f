import fc from "fast-check";
import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UsageError } from "../errors/sluice-error.ts";
import { defaultExecuteLimits } from "../execute/engine.ts";
import { defaultMcpLimits } from "../tools/mcp/mcp-source-options.ts";
import { defaultLimits } from "../sandbox/limits.ts";
import type { Environment } from "./environment.ts";
import { findRepeatedKeys, loadConfiguration, type LoadedConfiguration } from "./load-configuration.ts";

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
  auth: { tokens: [{ tenant: "t", sha256: "0".repeat(64), operator: true, subject: "s" }] },
  server: { allowedHosts: ["sluice.example"], allowTenantsToShareKernel: true, maxTurns: 2, retention: { days: 1 } },
};

describe("loadConfiguration", () => {
  it("returns the defaults when there is no file", async () => {
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
        allowTenantsToShareKernel: false,
        maxTurns: 16,
        maxTurnsPerClient: 8,
        maxQueuedPerClient: 100,
        queueDeadlineMs: 60_000,
        drainMs: 10_000,
        uploadBytes: 268_435_456,
        conversationBytes: 2_147_483_648,
        retention: { days: 30, maxBytes: 10_737_418_240 },
      },
    });
    expect(new Set(Object.values(origins).map(({ from }) => from))).toEqual(new Set(["default"]));
    expect(Object.keys(origins)).toEqual(
      expect.arrayContaining(["mcpServers", "model", "limits.execute.toolCalls", "tools.allow", "session"]),
    );
  });

  it("accepts a turn as long as the life of a sandbox, and refuses a longer one", async () => {
    const wallOf = async (content: object): Promise<unknown> =>
      await load(JSON.stringify(content)).then(
        ({ configuration: { budgets, limits } }) => [budgets.wallMs, limits.sandbox.leaseTimeoutMs],
        (error: Error) => error.message.split("\n")[1],
      );
    expect(await wallOf({ budgets: { wallMs: 900_000 } })).toEqual([900_000, 900_000]);
    const sandbox = { leaseTimeoutMs: 1_200_000 };
    expect(await wallOf({ budgets: { wallMs: 1_200_000 }, limits: { sandbox } })).toEqual([1_200_000, 1_200_000]);
    expect(await wallOf({ limits: { sandbox: { leaseTimeoutMs: 1000 } } })).toEqual([300_000, 1000]);
    expect(await wallOf({ budgets: { wallMs: 900_001 } })).toBe(
      "  budgets.wallMs: must be at most 900000, the life of a sandbox; to allow more, raise limits.sandbox.leaseTimeoutMs, too.",
    );
  });

  it("accepts every key, expands references and resolves paths relative to the file", async () => {
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
      auth: { tokens: [{ tenant: "t", sha256: "0".repeat(64), operator: true, subject: "s" }] },
      server: {
        allowedHosts: ["sluice.example"],
        allowTenantsToShareKernel: true,
        maxTurns: 2,
        maxTurnsPerClient: 8,
        maxQueuedPerClient: 100,
        queueDeadlineMs: 60_000,
        drainMs: 10_000,
        uploadBytes: 268_435_456,
        conversationBytes: 2_147_483_648,
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

  it("reads the named file and does not search for another one", async () => {
    await writeFile(path.join(directory, "other.json"), '\uFEFF{"model": "demo"}');
    const given = await loadConfiguration({ file: "other.json", workingDirectory: directory, environment: {} });
    expect([given.path, given.configuration.model]).toEqual([path.join(directory, "other.json"), "demo"]);
    await expect(loadConfiguration({ file: "none.json", workingDirectory: directory, environment: {} })).rejects.toThrow(
      `Cannot read the configuration file ${path.join(directory, "none.json")}: no such file.`,
    );
  });

  it("refuses a world-writable file that it found by itself, and reads it when it is named", async () => {
    await writeFile(file(), "{}");
    await chmod(file(), 0o666);
    await expect(loadConfiguration({ workingDirectory: directory, environment: {} })).rejects.toThrow(
      `Refusing to read ${file()}: every user can write to it, and a configuration can start programs.`,
    );
    expect((await loadConfiguration({ file: file(), workingDirectory: directory, environment: {} })).path).toBe(file());
  });

  it("reports every unknown key with its path and the nearest known key", async () => {
    const wrong = {
      mcpserver: {},
      mcpServers: { market: { comand: "node", arg: [] }, both: { command: "x", url: "http://h/" }, web: { url: "http://h/", env: {} } },
      limits: { sandbox: { cellTimeoutMS: 5 }, cellTimeoutMs: 1 },
      session: { identity: {}, regions: { choises: {}, choices: {} } },
      zebra: 1,
    };
    expect(await problemsOf(wrong)).toEqual([
      `11 problems in ${file()}:`,
      '  mcpServers.market.comand: is not a known field. Did you mean "command"?',
      '  mcpServers.market.arg: is not a known field. Did you mean "args"?',
      "  mcpServers.market: needs a command or a url.",
      "  mcpServers.both: has both a command and a url; remove one of them.",
      "  mcpServers.web.env: is only for servers with a command.",
      '  limits.sandbox.cellTimeoutMS: is not a known field. Did you mean "cellTimeoutMs"?',
      '  limits.cellTimeoutMs: is not a known field. Did you mean "limits.sandbox.cellTimeoutMs"?',
      '  session.regions.choises: is not a known field. Did you mean "choices"?',
      "  session.identity: is not a known field. Known fields: identities, regions, profiles, identityRequired.",
      '  mcpserver: is not a known field. Did you mean "mcpServers"?',
      "  zebra: is not a known field. Known fields: $schema, mcpServers, model, models, sandbox, limits, execute, artifacts, session, budgets, tools, auth, server.",
    ]);
  });

  it("reports wrong values with their path and the value", async () => {
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
      `15 problems in ${file()}:`,
      "  mcpServers.a.url: must be a URL that begins with http:// or https://.",
      "  mcpServers.b.command: must be a string, not 5.",
      "  mcpServers.b.allow[0]: must be a tool name, or * for all tools of this server.",
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
      "  auth.tokens[0].sha256: must be 64 lowercase hexadecimal digits.",
    ]);
  });

  it("reports the path and the variable of a reference that cannot be expanded, and never shows expanded values", async () => {
    const wrong = {
      mcpServers: { a: { command: "x", env: { KEY: "${MISSING_ONE}", B: "${toString}" }, args: ["${}", "${A:-b}", "${open"] } },
      model: "${ALSO_MISSING}",
      sandbox: { driver: "${SECRET}" },
      models: { openai: { apiKey: 5, headers: { H: true } } },
    };
    expect(await problemsOf(wrong, { SECRET: "hunter2" })).toEqual([
      `9 problems in ${file()}:`,
      "  mcpServers.a.env.KEY: environment variable MISSING_ONE is not set.",
      "  mcpServers.a.env.B: environment variable toString is not set.",
      '  mcpServers.a.args[0]: "${}" is not a valid reference. Write ${NAME} for a variable, or $${ for a literal ${.',
      '  mcpServers.a.args[1]: "${A:-b}" is not a valid reference. Write ${NAME} for a variable, or $${ for a literal ${.',
      '  mcpServers.a.args[2]: "${open" is not a valid reference. Write ${NAME} for a variable, or $${ for a literal ${.',
      "  model: environment variable ALSO_MISSING is not set.",
      "  models.openai.apiKey: must be a string, not 5.",
      "  models.openai.headers.H: must be a string, not true.",
      '  sandbox.driver: must be one of "auto", "gvisor", "gvisor-rootless", "bubblewrap", not a string.',
    ]);
  });

  it("turns $${ into a literal ${ and leaves a single $ alone", async () => {
    const { configuration } = await load(
      { mcpServers: { a: { command: "x", args: ["$${HOME}", "$5 ${A}$${B}", "$HOME"] } } },
      { A: "${B}" },
    );
    expect(configuration.mcpServers["a"]).toMatchObject({ args: ["${HOME}", "$5 ${B}${B}", "$HOME"] });
  });

  it("accepts JSON only, and does not quote the file in the error", async () => {
    expect(await problemsOf('{"model": "demo", // why\n}')).toEqual([
      `${file()} is not valid JSON: Expected double-quoted property name (line 1 column 19).`,
    ]);
    expect(await problemsOf("module.exports = {secret: 1}")).toEqual([`${file()} is not valid JSON: unexpected character.`]);
    expect(await problemsOf("")).toEqual([`${file()} is not valid JSON: Unexpected end of JSON input.`]);
    expect(await problemsOf("[]")).toEqual([`1 problem in ${file()}:`, "  the file: must be an object, not an array."]);
    expect(await problemsOf('{"mcpServers": {"__proto__": {"command": "x"}}}')).toEqual([
      `1 problem in ${file()}:`,
      "  mcpServers.__proto__: is not allowed as a key.",
    ]);
    expect(await problemsOf('{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {}}')).toEqual([
      `1 problem in ${file()}:`,
      "  mcpServers: is defined twice.",
    ]);
  });

  it("takes the model and the data directory from environment variables", async () => {
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

  it("starts programs in the directory of the file", async () => {
    const { configuration, origins } = await load({ mcpServers: { a: { command: "x" } } });
    expect(configuration.mcpServers["a"]).toEqual({ command: "x", cwd: directory });
    expect(origins["mcpServers.a.cwd"]).toEqual({ from: "default" });
  });
});

describe("findRepeatedKeys", () => {
  it("reports the path of each repeated key, even if the two spellings differ", () => {
    const text = String.raw`{"a": [{"b": 1}, {"b": {"x:{\"": 1, "b": "b"}, "b": [], "\u0062": 0}], "a": {"c": ["a", "a"]}, "d": {"a": 1}}`;
    expect(findRepeatedKeys(text)).toEqual([
      { path: "a[1].b", problem: "is defined twice." },
      { path: "a[1].b", problem: "is defined twice." },
      { path: "a", problem: "is defined twice." },
    ]);
  });

  it("reports nothing for JSON without repeated keys", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(findRepeatedKeys(text)).toEqual([]);
      }),
    );
  });
});
