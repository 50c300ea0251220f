import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, expect, it } from "vitest";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { createInvokeTool } from "../src/execute/invoke-tool.ts";
import { createMontyEngine } from "../src/execute/monty/create-monty-engine.ts";
import { runExecute, toExecuteJson, type ExecuteAnswer } from "../src/execute/run-execute.ts";
import { createLocalSource } from "../src/tools/create-local-source.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";

const page = readFileSync(path.join(import.meta.dirname, "../docs/execute.md"), "utf8");
const fences = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = "", text = ""]) => ({ language, text }));
const scripts = fences.filter(({ language }) => language === "python").map(({ text }) => text);
const answers = fences.filter(({ language }) => language === "json").map(({ text }) => JSON.parse(text) as unknown);

const monty = createMontyEngine({ poolSize: 1 });
afterAll(() => monty.close());
const report = { type: "object", properties: { campaign: { type: "string" } }, required: ["campaign"], additionalProperties: false };
const catalog = createToolCatalog({
  sources: [
    createLocalSource([
      { name: "list_campaigns", description: "Campaigns.", execute: () => ["c1", "c2", "c3"].map((id) => ({ id })) },
      {
        name: "get_report",
        description: "A report.",
        inputSchema: report,
        execute: ({ campaign }) => ({ campaign, cost: Number(String(campaign).slice(1)) * 10 + 0.5 }),
      },
    ]),
  ],
});

function execute(code: string): Promise<ExecuteAnswer> {
  const invoke = createInvokeTool({ catalog, policy: createToolPolicy() });
  return runExecute({ code, engines: { monty }, evidence: createEvidenceStore({}), invoke });
}

it("shows a script and its complete answer", async () => {
  const { timing, ...answer } = JSON.parse(toExecuteJson(await execute(scripts[0]!))) as Record<string, unknown>;
  expect(timing).toEqual({ executionMs: expect.any(Number) as number, totalMs: expect.any(Number) as number });
  expect(answer).toEqual(answers[0]);
});

it("shows how to read a failure", async () => {
  const { resultJson, error } = await execute(scripts[1]!);
  expect(error).toBeUndefined();
  const [kind, code, hints] = JSON.parse(resultJson) as [string, string, string[]];
  expect(kind).toBe("mcp_input_validation");
  expect(code).toBe("INPUT_VALIDATION_FAILED");
  expect(hints.join(" ")).toContain("campaign");
});

it("has no other scripts", () => {
  expect(scripts).toHaveLength(2);
  expect(answers).toHaveLength(1);
});
