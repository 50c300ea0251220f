import { readdir, readFile } from "node:fs/promises";
import { afterAll, describe, expect, test } from "vitest";
import { createMemoryStore } from "../src/artifacts/artifact-store.ts";
import type { ToolError } from "../src/errors/tool-error.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { createPythonParser } from "../src/interpreter/call-contract/python-parser.ts";
import { librarianPrompt, readHelperDocs } from "../src/prompts/librarian-prompt.ts";
import { createInterpreterTurn, disposeTurnSandbox } from "../src/interpreter/interpreter-turn.ts";
import { runCodeInterpreter } from "../src/interpreter/code-interpreter.ts";
import { defaultLimits } from "../src/sandbox/limits.ts";
import { createCodeInterpreterTools } from "../src/turn/tools/create-code-interpreter-tools.ts";
import { openTestRuntime, testedDrivers } from "./test-runtime.ts";

const packages = { pandas: "3.0.1", numpy: "2.4.0", matplotlib: "3.11.0", scipy: "1.17.0", statsmodels: "0.15.0", six: "1.17.0" };
const parser = createPythonParser();
afterAll(() => parser.close());

/** A turn that fails the test when it opens a sandbox. */
const turn = createInterpreterTurn({
  id: "turn-1",
  evidence: createEvidenceStore(),
  artifacts: createMemoryStore(),
  source: {
    openCellSession: () => Promise.reject(new Error("a session was opened")),
    limits: defaultLimits,
    helpers: async () => readHelperDocs().map(({ name }) => name),
    parser,
  },
});
const prompt = librarianPrompt({ packages, helpers: readHelperDocs() });
const face = createCodeInterpreterTools({ librarianPrompt: async () => prompt }, turn);
const options = { toolCallId: "call-1", messages: [], context: {} };

test("the size limit of code is the sandbox's limit", async () => {
  const evidence = createEvidenceStore();
  evidence.add({ tool: "get_price", output: "[1, 2]" });
  const errorOf = async (codeBytes: number): Promise<string | undefined> => {
    await using runtime = createRuntime({ cacheDirectory: "/nonexistent", limits: { ...defaultLimits, codeBytes } });
    const own = runtime.createTurn({ id: "turn-2", evidence, artifacts: createMemoryStore() });
    const contract = { operation: "aggregate", reason: "A sum.", inputAliases: ["get_price_1"], expectedArtifacts: [] };
    const { error } = await runCodeInterpreter(own, { code: "1".padEnd(300 * 1024, "\n"), postProcessingContract: contract });
    return error?.summary;
  };
  expect(await errorOf(1000)).toBe("The call was not run. The code has 307200 bytes, 1000 are allowed.");
  expect(await errorOf(400 * 1024)).toBe("There is no snapshot for this version of Sluice in the cache.");
});

describe("the tools for the AI SDK", () => {
  test("are three, and every tool and every field of its schema has a description", async () => {
    const { tools } = await face;
    expect(Object.keys(tools)).toEqual(["code_interpreter", "python_code_edit", "render_chart"]);
    for (const { description, inputSchema } of Object.values(tools)) {
      const { properties, additionalProperties } = (await (inputSchema as { jsonSchema: unknown }).jsonSchema) as PublishedSchema;
      expect(String(description).length).toBeGreaterThan(40);
      expect(additionalProperties).toBe(false);
      for (const [name, field] of Object.entries(properties)) expect(field.description, name).toMatch(/\w/);
    }
  });

  test("answer a malformed call with a tool error, without a sandbox", async () => {
    const { tools } = await face;
    for (const [name, one] of Object.entries(tools)) {
      const output = await (one.execute as (input: unknown, options: unknown) => Promise<never>)({ wrong: true }, options);
      const modelOutput = await (one.toModelOutput as (given: unknown) => Promise<ModelOutput>)({
        toolCallId: "call-1",
        input: {},
        output,
      });
      expect(modelOutput.type).toBe("error-text");
      const { toolError, error = toolError } = output as { toolError: ToolError; error?: ToolError };
      expect(JSON.parse(modelOutput.value)).toEqual({ status: "refused", error });
      expect([error.error_kind, error.tool]).toEqual(["mcp_input_validation", name]);
    }
  });
});

test.each(testedDrivers)(
  "a turn on %s without a valid call starts no process, and its instructions name the libraries of the snapshot",
  async (driver) => {
    await using runtime = openTestRuntime(driver, { poolSize: 1 });
    const never = runtime.createTurn({ id: "never", evidence: turn.evidence, artifacts: turn.artifacts });
    const { tools, instructions } = await createCodeInterpreterTools(runtime, never);
    const { packages } = await runtime.snapshot();
    const libraries = ["pandas", "numpy", "scipy", "matplotlib", "statsmodels", "pyarrow", "openpyxl"];
    expect(instructions).toContain(
      `Python 3.13 with ${libraries.map((name) => `${name} ${packages[name]}`).join(", ")}, their dependencies`,
    );
    const before = await childProcesses();
    for (const one of Object.values(tools)) await (one.execute as (input: unknown, options: unknown) => Promise<never>)({}, options);
    await disposeTurnSandbox(never);
    expect([never.sandbox, runtime.gate.taken, await childProcesses()]).toEqual([null, 0, before]);
  },
);

describe("the librarian prompt", () => {
  test("lists the libraries of the snapshot with their versions, and every helper with its docstring", () => {
    expect(prompt).toContain(
      "Python 3.13 with pandas 3.0.1, numpy 2.4.0, scipy 1.17.0, matplotlib 3.11.0, statsmodels 0.15.0, their dependencies, and the standard library; nothing else can be imported.",
    );
    for (const { name, signature, summary } of readHelperDocs()) {
      expect(summary, name).toMatch(/\w+ \w+/);
      expect(prompt).toContain(`- ${signature}: ${summary}`);
    }
  });

  test.each([
    ["one way", /Data flows one way: tools fetch, Python derives\. Python has no network/],
    ["the whole population", /over the whole population.*Top-N and selections are display, never the metric/],
    ["signs", /a positive change is flow in, a negative one flow out/],
    ["coverage", /coverage_change as an annotation.*never a flow bar/],
    ["duplicate buckets", /Do not hide them with drop_duplicates or dropna/],
  ])("has the rule about %s", (_, rule) => {
    expect(prompt).toMatch(rule);
  });

  test("names no source of data", () => {
    expect(prompt).not.toMatch(/binance|coinbase|bloomberg|yahoo|defillama|glassnode|coingecko|nasdaq|nyse/i);
  });
});

/** The running child processes of this process. */
async function childProcesses(): Promise<string[]> {
  const threads = await readdir("/proc/self/task");
  const lists = await Promise.all(threads.map((id) => readFile(`/proc/self/task/${id}/children`, "utf8").catch(() => "")));
  return lists.flatMap((list) => list.trim().split(" ")).filter((id) => id !== "");
}

interface PublishedSchema {
  properties: Record<string, { description?: string }>;
  additionalProperties: boolean;
}

interface ModelOutput {
  type: string;
  value: string;
}
