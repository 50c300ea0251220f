import { afterAll, describe, expect, test } from "vitest";
import { cacheDirectory } from "../src/config/cache-directory.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { turnResultSchema, type StopReason, type TurnResult } from "../src/protocol/turn-result.ts";
import type { ToolSource } from "../src/tools/contract.ts";
import { createLocalSource, type LocalTool } from "../src/tools/create-local-source.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { call, final, getPrices, scriptedModel, testTurn, type Said, type Script, type TestTurnOptions } from "./turn-fixtures.ts";

const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0, maxSandboxes: 3, queueDeadlineMs: 300_000 });
afterAll(() => runtime.close());

interface Fault {
  readonly script: Script;
  readonly options?: Partial<TestTurnOptions>;
  readonly stopReason: StopReason;
  /** Codes of the gaps, in order. */
  readonly gaps: readonly string[];
}

const fetchPrices = call("get_prices", { symbol: "A" });
const cell = (code: string, expectedArtifacts: string[] = []): Said =>
  call("code_interpreter", {
    code,
    postProcessingContract: {
      operation: "derive_metric",
      reason: "A number is asked for.",
      inputAliases: ["get_prices_1"],
      expectedArtifacts,
    },
  });
const draw =
  "df = to_frame(get_prices_1)\nfig, ax = plt.subplots()\nax.plot(df.day, df.price)\nsave_figure('The price of A by day')\nset_result(1)";
const tool = (execute: LocalTool["execute"]): Partial<TestTurnOptions> => ({ tools: [{ ...getPrices, execute }] });
const downSource: ToolSource = {
  name: "down",
  tools: async () => ({ tools: [], gap: { server: "down", reason: "It cannot be started: no such program." } }),
  [Symbol.asyncDispose]: async () => {},
};
const large = `[${Array.from({ length: 300_000 }, (_, day) => `{"day":${day},"symbol":"A","price":${day % 7},"note":"${"x".repeat(60)}"}`).join(",")}]`;

const faults: Readonly<Record<string, Fault>> = {
  "no fault": {
    script: { steps: [fetchPrices, cell("set_result(len(get_prices_1))"), final("300 rows.")] },
    stopReason: "complete_answer",
    gaps: [],
  },
  "a server that is down": {
    script: { steps: [fetchPrices, final("Done.")] },
    options: { catalog: createToolCatalog({ sources: [createLocalSource([getPrices]), downSource] }) },
    stopReason: "complete_answer",
    gaps: ["server_unavailable"],
  },
  "a tool that is slow": {
    script: { steps: [fetchPrices, final("Done.")] },
    options: { ...tool(() => new Promise(() => {})), toolTimeoutMs: 300 },
    stopReason: "complete_answer",
    gaps: [],
  },
  "an answer that is malformed": {
    script: { steps: [fetchPrices, final("Done.")] },
    options: tool(() => () => {}),
    stopReason: "complete_answer",
    gaps: [],
  },
  "30 MB of results": {
    script: { steps: [fetchPrices, cell("set_result(len(get_prices_1))"), final("300,000 rows.")] },
    options: tool(() => large),
    stopReason: "complete_answer",
    gaps: [],
  },
  "a sandbox that is killed": {
    script: {
      plan: { chartIntent: "explicit" },
      steps: [fetchPrices, cell("import os\nos.kill(os.getpid(), 9)", ["image"]), final("Sorry.")],
    },
    stopReason: "complete_answer",
    gaps: ["chart_not_rendered"],
  },
  "a model that fails": {
    script: { steps: [fetchPrices, { error: new Error("overloaded") }] },
    stopReason: "model_error",
    gaps: ["model_error"],
  },
  "a model that is cut": {
    script: { plan: { chartIntent: "explicit" }, steps: [fetchPrices, { cut: "Let" }] },
    stopReason: "model_error",
    gaps: ["model_error", "chart_not_rendered"],
  },
  "a model that turns on the spot": {
    script: { steps: [fetchPrices] },
    stopReason: "bounded_repeat_guardrail",
    gaps: ["bounded_repeat_guardrail"],
  },
  "a figure": {
    script: { plan: { chartIntent: "explicit" }, steps: [fetchPrices, cell(draw, ["image"]), final("Figure 1.")] },
    stopReason: "complete_answer",
    gaps: [],
  },
};

describe("fifty turns at once, with faults", () => {
  test("end in fifty truthful results, and nothing is left", { timeout: 300_000 }, async () => {
    const names = Array.from({ length: 50 }, (_, at) => Object.keys(faults)[at % 10]!);
    const results = await Promise.all(
      names.map(async (name, at): Promise<[string, TurnResult]> => {
        const { script, options } = faults[name]!;
        const turn = testTurn({ budgets: { wallMs: 280_000 }, ...options, model: scriptedModel(script), turnId: `turn-${at}` });
        return [name, await runTurn(runtime, turn.request)];
      }),
    );
    for (const [name, result] of results) {
      expect(turnResultSchema.parse(result)).toEqual(result);
      const { stopReason, gaps } = faults[name]!;
      expect([name, result.outcome.stopReason, result.gaps.map(({ code }) => code)]).toEqual([name, stopReason, gaps]);
      for (const { detail } of result.gaps) expect(result.answer).toContain(detail);
      expect(result.dataset).not.toBeNull();
    }
    expect([runtime.gate.taken, runtime.gate.waiting]).toEqual([0, 0]);
    expect(results.filter(([name]) => name === "30 MB of results").map(([, { dataset }]) => dataset!.bytes > 25_000_000)).toEqual(
      Array(5).fill(true),
    );
  });
});
