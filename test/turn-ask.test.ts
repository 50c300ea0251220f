import { createHash } from "node:crypto";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDatasetFileStore } from "../src/evidence/dataset/create-dataset-store.ts";
import { turnResultSchema } from "../src/protocol/turn-result.ts";

const sluice = path.resolve(import.meta.dirname, "../bin/sluice");
const marketServer = path.resolve(import.meta.dirname, "../examples/backends/market/market-server.ts");

/** Runs `sluice ask` as a user would: the real command, a real MCP server process, the default driver. */
describe("sluice ask", () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(path.join(tmpdir(), "sluice-ask-"));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const environment = (): NodeJS.ProcessEnv => ({ ...process.env, SLUICE_DATA: path.join(directory, "data") });
  function ask(args: string[], env: NodeJS.ProcessEnv = {}): { status: number | null; stdout: string; stderr: string } {
    const options = { cwd: directory, encoding: "utf8", maxBuffer: 2 ** 28, env: { ...environment(), ...env } } as const;
    return spawnSync(sluice, ["ask", ...args], options);
  }
  function script(name: string, content: object): string {
    writeFileSync(path.join(directory, name), JSON.stringify(content));
    return `script:${name}`;
  }

  test("runs the bundled sample without an API key, and shows the progress", { timeout: 300_000 }, () => {
    const { status, stdout, stderr } = ask(["--model", "demo", "--out", "out"]);
    expect(status).toBe(0);
    expect(stderr).toContain("configuration: no sluice.config.json found; using the bundled sample\n");
    expect(stderr).toMatch(/✓ market · get_reserves: 28,878 rows, 2 MB, [\d.]+ s, as get_reserves_1\n/);
    expect(stderr).toContain("| 731 days; 4 coverage events; largest monthly outflow: -14,106 BTC\n");
    expect(stderr).toContain("✓ figure: Total reserves and net flow\n");
    expect(stderr).not.toContain("latency-probe");
    for (const words of ["Meridian", "Harbour was first listed on 2025-03-03 with 35,000", "Quarry was delisted"])
      expect(stdout).toContain(words);
    expect(stdout).toMatch(/Total reserves and net flow: out\/image-1-[0-9a-f]{8}\.png\n/);
    expect(stdout).toContain("ended: complete_answer; confidence: high (The answer is complete, and no tool call failed.)\nmodel: demo\n");
    const files = readdirSync(path.join(directory, "out")).map((name) => name.replace(/-[0-9a-f]{8}\./, "."));
    expect(files.sort()).toEqual(
      [
        "chart-2.json",
        "chart_1.csv",
        "dataset.json",
        "get_prices_1.csv",
        "get_reserves_1.csv",
        "image-1.png",
        "result.json",
        "result_1.csv",
      ].sort(),
    );
    const result = turnResultSchema.parse(JSON.parse(readFileSync(path.join(directory, "out/result.json"), "utf8")));
    const events =
      "Coverage changed: Meridian stopped reporting on 2024-09-10 with 93,069.15; Meridian reported again on 2024-09-24 with 92,756.88; Harbour was first listed on 2025-03-03 with 35,000; Quarry was delisted on 2025-07-01 with 63,680.17.";
    expect(result.gaps).toEqual([{ code: "coverage_events", severity: "info", detail: events }]);
    expect(result.answer.split(events)).toHaveLength(2); // stated once
    for (const { url } of result.artifacts) expect(existsSync(new URL(url))).toBe(true);
    expect(existsSync(new URL(result.dataset!.publicDataUrl))).toBe(true);
  });

  test("prints the probes of cells and tools with --probes, as its help says", { timeout: 300_000 }, () => {
    expect(ask(["--help"]).stdout).toContain(
      "  --probes        print probes (one log line per event of tools and cells) to standard error\n",
    );
    const { status, stderr } = ask(["--model", "demo", "--probes"]);
    expect(status).toBe(0);
    expect(stderr).toMatch(/^\[mcp-latency-probe\] event=mcp_call_success /m);
    expect(stderr).toMatch(/^\[python-sandbox-latency-probe\] event=python_call_success /m);
  });

  test("prints only the result document with --json, and exits with 4 for a bounded answer", async () => {
    const model = script("spot.json", {
      plan: { chartIntent: "explicit" },
      steps: [{ toolCalls: [{ tool: "get_prices", input: { asset: "BTC" } }] }],
    });
    writeFileSync(
      path.join(directory, "sluice.config.json"),
      JSON.stringify({ mcpServers: { shop: { command: process.execPath, args: [marketServer] } }, model }),
    );
    const { status, stdout, stderr } = ask(["Plot it.", "--json"]);
    rmSync(path.join(directory, "sluice.config.json"));
    expect(status).toBe(4);
    expect(stderr).toBe(`configuration: ${path.join(directory, "sluice.config.json")}\n`);
    const result = turnResultSchema.parse(JSON.parse(stdout));
    expect(result.outcome.stopReason).toBe("bounded_repeat_guardrail");
    expect(result.gaps.map(({ code }) => code)).toEqual(["bounded_repeat_guardrail", "chart_not_rendered"]);
    const { hash, publicDataUrl } = result.dataset!;
    const datasets = path.join(directory, "data", "artifacts", "datasets");
    expect(publicDataUrl).toBe(pathToFileURL(path.join(datasets, hash.slice(0, 2), `${hash}.json`)).href);
    const document = await Array.fromAsync((await createDatasetFileStore({ directory: datasets }).open(hash))!.stream());
    expect(createHash("sha256").update(Buffer.concat(document)).digest("hex")).toBe(hash);
    expect(readdirSync(datasets, { recursive: true, encoding: "utf8" }).filter((name) => name.includes("document"))).toEqual([]);
  });

  test("names the dataset without --out, and prints the answer even if --out is not writable", () => {
    const model = script("short.json", { steps: [{ toolCalls: [{ tool: "get_prices", input: { asset: "BTC" } }] }, { text: "Done." }] });
    const plain = ask(["Which?", "--model", model]);
    expect(plain.stdout).toMatch(
      /\ndata: ds_[0-9a-f]{24}, [\d.]+ \w+; use --out DIR to save it as dataset\.json with its tables as CSV\n$/,
    );
    mkdirSync(path.join(directory, "taken", "dataset.json"), { recursive: true });
    const { status, stdout, stderr } = ask(["Which?", "--model", model, "--json", "--out", "taken"]);
    expect([status, turnResultSchema.parse(JSON.parse(stdout)).answer]).toEqual([1, expect.stringContaining("Done.")]);
    expect(stderr).toMatch(
      /sluice: The question was answered, but its files cannot be written to taken: EISDIR: .*\n  Choose another directory/,
    );
  });

  test(
    "refuses destructive calls without a terminal, and says what to configure; the allow-list permits them",
    { timeout: 180_000 },
    () => {
      const server = { command: process.execPath, args: [path.resolve(import.meta.dirname, "fixtures/faulty-server.ts")] };
      const model = script("drop.json", {
        steps: [
          { toolCalls: [{ tool: "die", input: {} }] },
          { toolCalls: [{ tool: "execute", input: { code: 'return await call_tool("die", {"again": 1})' } }] },
          { text: "Done." },
        ],
      });
      const run = (line: string): ReturnType<typeof ask> => {
        const frail = { ...server, ...(JSON.parse(`{${line}}`) as object) };
        writeFileSync(path.join(directory, "drop.config.json"), JSON.stringify({ mcpServers: { frail }, model }));
        return ask(["Drop it.", "--config", "drop.config.json"]);
      };
      const refused = run("");
      const because =
        'die was not called: it says that it changes something, and this call was not approved: there is no terminal to ask for approval. To allow it, set "allow": ["die"] in mcpServers.frail of sluice.config.json and start Sluice again; "allow": ["*"] allows all tools of this server.';
      expect(refused.stderr.split("\n").filter((line) => line.includes("✗"))).toEqual([
        `  ✗ frail · die: ${because}`,
        `    ✗ frail · die: ${because}`,
        `  ✗ execute: ${because}`,
      ]);
      expect(refused.status).toBe(0);
      expect(run('"allow": ["die"]').stderr).toContain("✗ frail · die: die failed: there is no connection to the backend.");
    },
  );

  test("exits with 1 when the model fails, and says once why and what to do", () => {
    const { status, stdout } = ask(["How?", "--model", "openai-compatible:m"], { OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:9/v1" });
    expect(status).toBe(1);
    expect(stdout).toMatch(
      /^openai-compatible:m cannot be reached at 127\.0\.0\.1:9: .*\. Check that the server runs .*\n\nended: model_error\nmodel: openai-compatible:m\nused: 0 steps, /,
    );
  });

  test("exits with 1 on interrupt, and leaves no process behind", { timeout: 90_000 }, async () => {
    const cell = {
      tool: "code_interpreter",
      input: {
        code: "print('begun')\nwhile True: pass",
        postProcessingContract: { operation: "other", reason: "To be interrupted.", inputAliases: ["get_prices_1"], expectedArtifacts: [] },
      },
    };
    const fetched = { tool: "get_prices", input: { asset: "BTC" } };
    const model = script("endless.json", { steps: [{ toolCalls: [fetched] }, { toolCalls: [cell] }] });
    const child = spawn(sluice, ["ask", "Go.", "--model", model], { cwd: directory, env: environment(), detached: true });
    let stderr = "";
    let stdout = "";
    child.stdout.on("data", (text: Buffer) => (stdout += text.toString()));
    child.stderr.on("data", (text: Buffer) => {
      stderr += text.toString();
      if (!child.killed && stderr.includes("| begun")) child.kill("SIGINT");
    });
    const status = await new Promise((resolve) => child.once("close", resolve));
    expect(status).toBe(1);
    expect(() => process.kill(-child.pid!, 0)).toThrow("ESRCH");
    expect(stdout).toContain("ended: aborted; confidence: low (The turn was aborted before it finished.)");
  });

  test.each([
    [["one", "two", "--model", "demo"], /expected one question, got 2\. Put the question in quotes\./],
    [[" ", "--model", "demo"], /the question is empty\./],
    [["--model", "script:x.json"], /a question is required\./],
    [["How?", "--nonsense"], /Unknown option '--nonsense'/],
    [["How?"], /No model is connected\.[\s\S]*export OPENAI_API_KEY=/],
    [["How?", "--model", "script:missing.json"], /missing\.json/],
    [["How?", "--config", "missing.json"], /missing\.json/],
  ])("exits with 2 for %j", (args, message) => {
    const { status, stdout, stderr } = ask(args, { SLUICE_MODEL: "" });
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
  });

  test("exits with 3 without a sandbox, before any model call", () => {
    const { status, stderr } = ask(["--model", "demo"], { SLUICE_CACHE: path.join(directory, "empty") });
    expect(status).toBe(3);
    expect(stderr).toContain("There is no snapshot for this version of Sluice in the cache.");
  });
});
