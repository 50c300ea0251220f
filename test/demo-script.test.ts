import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMemoryStore } from "../src/artifacts/artifact-store.ts";
import { renderChart, type ChartAnswer } from "../src/interpreter/render-chart.ts";
import { bundledSample } from "../src/config/open-configured.ts";
import type { Runtime } from "../src/create-runtime.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { runCodeInterpreter } from "../src/interpreter/code-interpreter.ts";
import type { ToolResult } from "../src/interpreter/tool-result.ts";
import { disposeTurnSandbox } from "../src/interpreter/interpreter-turn.ts";
import { createMcpSource } from "../src/tools/mcp/create-mcp-source.ts";
import demo from "../src/models/demo-script.json" with { type: "json" };
import { modelScriptSchema, type ModelScript } from "../src/models/model-script.ts";
import { callBackendTool } from "../src/tools/call-backend-tool.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";
import { openTestRuntime } from "./test-runtime.ts";

interface Derived {
  readonly summary: Readonly<
    Record<"first_total" | "last_total" | "total_change" | "net_flow" | "coverage_change" | "last_close_usd", number>
  >;
  readonly coverage_events: readonly { period: string; entity: string; kind: string; value: number }[];
  readonly monthly: readonly { month: string; net_flow: number; coverage_change: number }[];
}

const demoScript: ModelScript = demo;

/** Runs every call of the script for real: the sample as a process, the cell in the default sandbox. */
describe("the bundled demo", () => {
  const evidence = createEvidenceStore();
  const artifacts = createMemoryStore();
  let runtime: Runtime;
  let cell: ToolResult;
  let chart: ChartAnswer;
  let derived: Derived;

  beforeAll(async () => {
    runtime = openTestRuntime("gvisor");
    const turn = runtime.createTurn({ id: "demo", evidence, artifacts });
    await using source = createMcpSource({ name: "market", server: bundledSample()["market"]! });
    const catalog = createToolCatalog({ sources: [source] });
    for (const { tool, input } of demoScript.steps.flatMap((step) => step.toolCalls ?? [])) {
      if (tool === "code_interpreter") cell = await runCodeInterpreter(turn, input);
      else if (tool === "render_chart") chart = await renderChart({ input, evidence, artifacts });
      else {
        const reply = await callBackendTool({ catalog, policy: createToolPolicy(), name: tool, args: input });
        if (!reply.ok) throw new Error(`${tool} failed: ${JSON.stringify(reply.failure)}`);
        evidence.add({ tool: reply.tool.fullName, arguments: input, ...reply.answer });
      }
    }
    await disposeTurnSandbox(turn);
    derived = JSON.parse(cell.outcome?.resultJson ?? "null") as Derived;
  });
  afterAll(() => runtime.close());

  it("is a valid model script", () => {
    expect(modelScriptSchema.safeParse(demoScript).success).toBe(true);
  });

  it("draws a chart, and a figure that needs no repair", () => {
    expect(cell.error).toBeNull();
    expect([cell.outcome?.status, cell.resultAlias, cell.repair]).toEqual(["ok", "result_1", null]);
    expect(cell.artifacts).toMatchObject([{ kind: "image", title: "Total reserves and net flow" }]);
    expect(Object.keys(cell.outcome?.diagnostics ?? {})).toEqual(["dataQuality", "coverageEvents", "coverageSeries"]);
    expect(chart).toMatchObject({ ok: true, artifact: { kind: "chart", title: "Net flow of reserves by month" } });
    expect(chart.ok && chart.artifact.data).toHaveLength(24);
  });

  it("separates flow from coverage, and the parts add up to the total", () => {
    const { summary, coverage_events, monthly } = derived;
    expect(summary.net_flow + summary.coverage_change).toBeCloseTo(summary.total_change, 2);
    expect(summary.last_total - summary.first_total).toBeCloseTo(summary.total_change, 2);
    expect(monthly.reduce((sum, month) => sum + month.net_flow, 0)).toBeCloseTo(summary.net_flow, 1);
    expect(coverage_events).toEqual([
      { period: "2024-09-10", entity: "Meridian", kind: "gap_start", value: 93_069.148 },
      { period: "2024-09-24", entity: "Meridian", kind: "gap_end", value: 92_756.884 },
      { period: "2025-03-03", entity: "Harbour", kind: "first_listed", value: 35_000 },
      { period: "2025-07-01", entity: "Quarry", kind: "delisted", value: 63_680.171 },
    ]);
  });

  it("states the computed numbers in its answer, and names every coverage event", () => {
    const answer = demoScript.synthesis ?? "";
    expect(demoScript.steps.at(-1)).toEqual({ text: answer });
    const { summary, coverage_events } = derived;
    const whole = (value: number): string => Math.round(Math.abs(value)).toLocaleString("en-US");
    const { first_total, last_total, total_change, net_flow, coverage_change, last_close_usd } = summary;
    for (const value of [first_total, last_total, total_change, net_flow, coverage_change]) expect(answer).toContain(whole(value));
    for (const { period, entity, value } of coverage_events) {
      const size = value.toLocaleString("en-US", { maximumFractionDigits: 2 });
      expect(answer).toMatch(new RegExp(`${entity} [a-z ]+ on ${period} with ${RegExp.escape(size)}[;.]`));
    }
    expect(answer).toContain(last_close_usd.toLocaleString("en-US"));
    expect(answer).toContain(`${((last_total * last_close_usd) / 1e9).toFixed(1)} billion USD`);
    expect(cell.outcome?.diagnostics["dataQuality"]).toMatchObject([{ nulls: 263, entities: 40, coverageEvents: 4 }]);
    expect(answer).toContain("263 null placeholders");
  });
});
