import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { cacheDirectory } from "../src/config/environment.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { createMcpSource } from "../src/tools/mcp/create-mcp-source.ts";
import { parseProbe } from "../src/protocol/probe.ts";
import { turnResultSchema, type StopReason, type TurnResult } from "../src/protocol/turn-result.ts";
import type { ToolSource } from "../src/tools/backend-tool.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { killSandbox, listHostResources, listSandboxResources } from "./fixtures/host-processes.ts";
import { call, final, scriptedModel, testTurn, type StepReply, type Script } from "./turn-fixtures.ts";

const server = path.join(import.meta.dirname, "fixtures/faulty-server.ts");
const openServer = (name: string, ...flags: string[]): ToolSource =>
  createMcpSource({ name, server: { command: process.execPath, args: [server, ...flags] }, environment: {}, timeoutMs: 240_000 });

/** Real server processes: one that works, one that cannot be started, one that dies on request. */
const sources = { shop: openServer("shop"), down: openServer("down", "--down"), frail: openServer("frail") };
const catalogs = {
  well: createToolCatalog({ sources: [sources.shop], maxConcurrentCalls: 50 }),
  half: createToolCatalog({ sources: [sources.shop, sources.down], maxConcurrentCalls: 50 }),
  frail: createToolCatalog({ sources: [sources.frail], maxConcurrentCalls: 50 }),
};
const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0, maxSandboxes: 3, queueDeadlineMs: 300_000 });
async function closeAll(): Promise<void> {
  await Promise.all(Object.values(sources).map((source) => source[Symbol.asyncDispose]()));
  await runtime.close();
}
afterAll(closeAll);

interface Fault {
  readonly script: Script;
  readonly catalog?: keyof typeof catalogs;
  readonly stopReason: StopReason;
  /** The codes of the gaps, in order. */
  readonly gaps: readonly string[];
  /** How each call ended. */
  readonly calls: readonly string[];
  /** Kills the sandbox as soon as its cell writes output. */
  readonly killsSandbox?: boolean;
}

/** Waits for events instead of sleeping. */
const hangBound = { timeout: 30_000, interval: 100 };

const fetchPrices = call("get_prices", { symbol: "A" });
const explicit = { chartIntent: "explicit" };
const cell = (code: string, expectedArtifacts: string[] = [], alias = "get_prices_1"): StepReply =>
  call("code_interpreter", {
    code,
    postProcessingContract: { operation: "derive_metric", reason: "A number is asked for.", inputAliases: [alias], expectedArtifacts },
  });
const draw =
  "df = to_frame(get_prices_1)\nfig, ax = plt.subplots()\nax.plot(df.day, df.price)\nsave_figure('The price of A by day')\nset_result(1)";

const faults: Readonly<Record<string, Fault>> = {
  "no fault": {
    script: { plan: explicit, steps: [fetchPrices, cell(draw, ["image"]), final("Figure 1.")] },
    stopReason: "complete_answer",
    gaps: [],
    calls: ["ok", "ok", "ok"],
  },
  "a server that is down": {
    script: { steps: [fetchPrices, final("Done.")] },
    catalog: "half",
    stopReason: "complete_answer",
    gaps: ["server_unavailable"],
    calls: ["ok", "ok"],
  },
  "a server that dies": {
    script: { steps: [call("die"), final("Done.")] },
    catalog: "frail",
    stopReason: "complete_answer",
    gaps: [],
    calls: ["error", "ok"],
  },
  "a tool that is slow": {
    script: { steps: [call("get_slow"), final("Done.")] },
    stopReason: "complete_answer",
    gaps: [],
    calls: ["error", "ok"],
  },
  "an upstream that refuses": {
    script: { plan: explicit, steps: [1, 2, 3, 4].map((page) => call("get_refused", { page })) },
    stopReason: "bounded_upstream_failure",
    gaps: ["bounded_upstream_failure", "chart_not_rendered"],
    calls: ["error", "error", "error"],
  },
  "an answer that is malformed": {
    script: { steps: [call("get_garbage"), final("Done.")] },
    stopReason: "complete_answer",
    gaps: [],
    calls: ["ok", "ok"],
  },
  "30 MB of results": {
    script: { steps: [call("get_large"), cell("set_result(len(get_large_1))", [], "get_large_1"), final("300,000 rows.")] },
    stopReason: "complete_answer",
    gaps: [],
    calls: ["ok", "ok", "ok"],
  },
  "a sandbox that is killed": {
    script: { plan: explicit, steps: [fetchPrices, cell("print('begun', flush=True)\nwhile True: pass", ["image"]), final("Sorry.")] },
    stopReason: "complete_answer",
    gaps: ["chart_not_rendered"],
    calls: ["ok", "error", "ok"],
    killsSandbox: true,
  },
  "a cell that is killed": {
    script: { plan: explicit, steps: [fetchPrices, cell("import os\nos.kill(os.getpid(), 9)", ["image"]), final("Sorry.")] },
    stopReason: "complete_answer",
    gaps: ["chart_not_rendered"],
    calls: ["ok", "error", "ok"],
  },
  "a model that fails": {
    script: { steps: [fetchPrices, { error: new Error("overloaded") }] },
    stopReason: "model_error",
    gaps: ["model_error"],
    calls: ["ok"],
  },
  "a model that is cut": {
    script: { plan: explicit, steps: [fetchPrices, { cut: "Let" }] },
    stopReason: "model_error",
    gaps: ["model_error"],
    calls: ["ok"],
  },
};

describe("fifty turns at once, with faults", () => {
  test("end with fifty correct results, and leave nothing behind", { timeout: 300_000 }, async () => {
    const before = await listHostResources();
    const kinds = Object.keys(faults);
    const names = Array.from({ length: 50 }, (_, at) => kinds[at % kinds.length]!);
    const killed: number[] = [];
    const results = await Promise.all(
      names.map(async (name, at): Promise<[string, TurnResult]> => {
        const { script, catalog = "well", killsSandbox = false } = faults[name]!;
        let sandboxId = "";
        const turn = testTurn({
          model: scriptedModel(script),
          catalog: catalogs[catalog],
          policy: createToolPolicy({ allow: ["frail__*"] }),
          turnId: `turn-${at}`,
          onProbe: (line) => void (sandboxId = String(parseProbe(line)?.fields["sandboxId"] ?? sandboxId)),
          onEvent: ({ type }) =>
            void (type === "cell-output" && killsSandbox && killSandbox(sandboxId).then((count) => killed.push(count))),
          toolTimeoutMs: name === "a tool that is slow" ? 1_000 : 240_000, // one server produces all large results, possibly on a busy machine
        });
        return [name, await runTurn(runtime, turn.request)];
      }),
    );
    for (const [name, result] of results) {
      expect(turnResultSchema.parse(result)).toEqual(result);
      const { stopReason, gaps, calls } = faults[name]!;
      const statuses = result.trace.flatMap((step) => step.calls.map(({ status }) => status));
      // Whether a server that died is back by the next step depends on timing.
      const found = result.gaps.map(({ code }) => code).filter((code) => name !== "a server that dies" || code !== "server_unavailable");
      expect([name, result.outcome.stopReason, found, statuses], JSON.stringify(result.grounding.failures)).toEqual([
        name,
        stopReason,
        gaps,
        calls,
      ]);
      for (const { detail } of result.gaps) expect(result.answer).toContain(detail);
      expect(result.dataset).not.toBeNull();
    }
    expect([runtime.gate.taken, runtime.gate.waiting]).toEqual([0, 0]);
    const of = (kind: string): TurnResult[] => results.flatMap(([name, result]) => (name === kind ? [result] : []));
    expect(of("30 MB of results").filter(({ dataset }) => dataset!.bytes < 25_000_000)).toEqual([]);
    expect(killed).toHaveLength(of("a sandbox that is killed").length);
    for (const count of killed) expect(count).toBeGreaterThan(0);
    for (const { gaps } of of("a sandbox that is killed"))
      expect(gaps[0]!.detail).toMatch(/^The requested chart could not be rendered: code_interpreter failed: .*The sandbox is gone/);
    await expect.poll(listSandboxResources, hangBound).toEqual({ processes: [], leases: [] });
    await closeAll();
    await expect.poll(listHostResources, hangBound).toEqual(before);
  });
});
