import { execFile } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const program = path.join(import.meta.dirname, "../src/cli/main.ts");
let directory = "";

beforeAll(async () => {
  directory = await realpath(await mkdtemp(path.join(tmpdir(), "sluice-config-")));
  await mkdir(path.join(directory, "below"));
  const market = {
    command: "node",
    args: ["server.js", "${MARKET_KEY}"],
    env: { KEY: "plain-secret", BOTH: "plain-secret-${MARKET_KEY}" },
  };
  await writeFile(
    path.join(directory, "sluice.config.json"),
    JSON.stringify({ model: "demo", mcpServers: { market }, budgets: { steps: 3 } }),
  );
});
afterAll(() => rm(directory, { recursive: true }));

interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function config(args: string[], env: Record<string, string> = { MARKET_KEY: "hunter2" }): Promise<CommandResult> {
  const options = { cwd: path.join(directory, "below"), env: { PATH: process.env["PATH"] ?? "", HOME: directory, ...env } };
  return new Promise((resolve) => {
    execFile(process.execPath, [program, "config", ...args], options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

describe("sluice config", () => {
  it("prints each value with its origin, and no secret", async () => {
    const { code, stdout, stderr } = await config([]);
    expect([code, stderr]).toEqual([0, ""]);
    const lines = stdout.split("\n").map((line) => line.replaceAll(/ {2,}/g, "  "));
    expect(lines[0]).toBe(`# ${path.join(directory, "sluice.config.json")}`);
    expect(lines).toEqual(
      expect.arrayContaining([
        'mcpServers.market.args[1]  "${MARKET_KEY}"  environment: MARKET_KEY',
        'mcpServers.market.env.KEY  "(hidden)"  file',
        'model  "demo"  file',
        "budgets.steps  3  file",
        "budgets.wallMs  300000  default",
      ]),
    );
    expect(stdout).not.toMatch(/hunter2|plain-secret/);
  });

  it("prints one JSON document with --json, and no secret in it", async () => {
    const { code, stdout } = await config(["--json"]);
    expect(code).toBe(0);
    expect(stdout).not.toMatch(/hunter2|plain-secret/);
    expect(JSON.parse(stdout)).toMatchObject({
      schemaVersion: 1,
      path: path.join(directory, "sluice.config.json"),
      configuration: { model: "demo", budgets: { steps: 3, chartBoost: 4 }, mcpServers: { market: { env: { KEY: "(hidden)" } } } },
      origins: { model: { from: "file" }, "budgets.chartBoost": { from: "default" } },
    });
  });

  it("exits with 2 and names the variable that is missing", async () => {
    expect(await config([], {})).toEqual({
      code: 2,
      stdout: "",
      stderr: `sluice: 2 problems in ${path.join(directory, "sluice.config.json")}:\n  mcpServers.market.args[1]: environment variable MARKET_KEY is not set.\n  mcpServers.market.env.BOTH: environment variable MARKET_KEY is not set.\n  docs/configuration.md lists every key. Nothing was started.\n`,
    });
  });
});
