import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { loadConfiguration } from "../src/config/load-configuration.ts";
import { processEnvironment } from "../src/config/environment.ts";
import { openConfigured, type Configured } from "../src/config/open-configured.ts";
import type { ProbeSink } from "../src/protocol/probe.ts";
import { createConversation } from "../src/turn/create-conversation.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { evidenceRecordSchema, toEvidenceRecord } from "../src/evidence/evidence-record.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { call, final, scriptedModel, type StepReply } from "./turn-fixtures.ts";

/** Everything is opened from one configuration file: a real server process, stores on disk, the default driver. */
const directory = mkdtempSync(path.join(tmpdir(), "sluice-configured-"));
afterAll(() => rmSync(directory, { recursive: true }));
const server = path.resolve(import.meta.dirname, "../examples/backends/market/market-server.ts");

async function open(budgets: object, rest: object = {}, onProbe?: ProbeSink): Promise<Configured> {
  const file = path.join(directory, "sluice.config.json");
  const mcpServers = { market: { command: process.execPath, args: [server] } };
  writeFileSync(file, JSON.stringify({ mcpServers, artifacts: { directory: "artifacts" }, budgets, ...rest }));
  const environment = processEnvironment();
  return openConfigured({ loaded: await loadConfiguration({ file, workingDirectory: directory, environment }), environment, onProbe });
}

const prices = (asset: string): StepReply => call("get_prices", { asset });
const assets = ["BTC", "ETH"].map(prices);

describe("the budgets of a configuration", () => {
  test("limit how much of one output the model reads", async () => {
    await using configured = await open({ previewBytes: 600 });
    const model = scriptedModel({ steps: [...assets, final("Done.")] });
    await runTurn(configured.runtime, { ...configured.openConversation(), question: "How?", model });
    const shown = model.stepCalls[2]!.prompt.filter(({ role }) => role === "tool")
      .flatMap(({ content }) => content as { output: { value: string } }[])
      .flatMap(({ output }) => output.value.split("\n"))
      .map((preview) => Buffer.byteLength(preview));
    expect(shown).toHaveLength(4); // the prices and the text around them
    for (const bytes of shown) expect(bytes).toBeLessThanOrEqual(600);
  });

  test.each([
    [{ tokens: 25 }, "The turn used 30 tokens; its budget is 25."],
    [{ cost: { maximum: 0.001, inputPerMillionTokens: 30, outputPerMillionTokens: 60 } }, "The turn cost 0.0012; its budget is 0.001."],
    [{ steps: 1 }, "Step limit reached (1) before the model finished."],
  ])("end a turn that has spent one of them, and name it: %j", async (budgets, detail) => {
    await using configured = await open(budgets);
    const model = scriptedModel({ steps: assets });
    const result = await runTurn(configured.runtime, { ...configured.openConversation(), question: "How?", model });
    expect(result.outcome.stopReason).toBe("bounded_step_budget");
    expect(result.gaps).toEqual([{ code: "bounded_step_budget", severity: "major", detail }]);
    expect(result.answer).toContain(detail);
  });
});

describe("a configuration", () => {
  test("opens its model, or says what to set", async () => {
    await using without = await open({});
    await expect(without.openModel()).rejects.toThrow("No model is connected.");
    await using demo = await open({}, { model: "demo" });
    expect((await demo.openModel()).modelId).toBe("demo");
  });

  test("limits concurrent calls to limits.mcp.maxConcurrentCalls", async () => {
    const probes: string[] = [];
    const limits = { mcp: { maxConcurrentCalls: 1 } };
    await using configured = await open({}, { limits }, (line) => probes.push(line));
    const both: StepReply = { calls: ["BTC", "ETH"].map((asset) => ({ tool: "get_prices", input: { asset } })) };
    const model = scriptedModel({ steps: [both, final("Done.")] });
    await runTurn(configured.runtime, { ...configured.openConversation(), question: "How?", model });
    const events = probes.flatMap((line) => /^\[mcp-latency-probe\] event=mcp_call_(\w+)/.exec(line)?.[1] ?? []);
    expect(events.map((event) => (event === "start" ? "start" : "end"))).toEqual(["start", "end", "start", "end"]);
  });

  test("accepts a server result of 100 MB: Python gets all of it, the model a preview", { timeout: 300_000 }, async () => {
    const faulty = path.resolve(import.meta.dirname, "fixtures/faulty-server.ts");
    const mcpServers = { shop: { command: process.execPath, args: [faulty] } };
    await using configured = await open({}, { mcpServers, limits: { mcp: { timeoutMs: 240_000 }, sandbox: { cellTimeoutMs: 240_000 } } });
    const contract = { operation: "aggregate", reason: "All rows.", inputAliases: ["get_huge_1"], expectedArtifacts: [] };
    const code = "set_result([len(get_huge_1), sum(row['price'] for row in get_huge_1), get_huge_1[-1]['note']])";
    const model = scriptedModel({
      steps: [call("get_huge"), call("code_interpreter", { code, postProcessingContract: contract }), final("100,000 rows.")],
    });
    const parts = configured.openConversation();
    const result = await runTurn(configured.runtime, { ...parts, question: "How many?", model });
    expect([result.outcome.stopReason, result.grounding.failures]).toEqual(["complete_answer", []]);
    const { evidence } = parts.conversation;
    expect(evidence.get("get_huge_1")!.bytes).toBeGreaterThan(100_000_000);
    const sum = Array.from({ length: 100_000 }, (_, day) => day % 7).reduce((total, price) => total + price, 0);
    expect(JSON.parse(new TextDecoder().decode(evidence.get("result_1")!.read()))).toEqual([100_000, sum, "x".repeat(1_000)]);
    expect(result.dataset!.bytes).toBeGreaterThan(100_000_000);
    expect(JSON.stringify(model.stepCalls[1]!.prompt.at(-1)).length).toBeLessThan(6_000);
  });

  test("lets a conversation continue in another process", async () => {
    const first = await open({});
    const parts = first.openConversation({ tenant: "acme" });
    await runTurn(first.runtime, { ...parts, question: "First?", model: scriptedModel({ steps: [prices("BTC"), final("One.")] }) });
    const { evidence, exchanges, id } = parts.conversation;
    const stored = evidence.aliases().map((alias) => {
      const item = evidence.get(alias)!;
      return { record: JSON.stringify(toEvidenceRecord(item)), bytes: Buffer.from(item.read()) };
    });
    const storedExchanges = JSON.stringify(exchanges);
    await first[Symbol.asyncDispose]();

    await using second = await open({});
    const restored = stored.map(({ record, bytes }) => ({ record: evidenceRecordSchema.parse(JSON.parse(record)), read: () => bytes }));
    const conversation = createConversation({
      id,
      evidence: createEvidenceStore({ conversationId: id, tenant: "acme", restored }),
      exchanges: JSON.parse(storedExchanges) as typeof exchanges,
    });
    const contract = { operation: "aggregate", reason: "A count.", inputAliases: ["get_prices_1"], expectedArtifacts: [] };
    const cell = call("code_interpreter", { code: "set_result(len(to_frame(get_prices_1)))", postProcessingContract: contract });
    const model = scriptedModel({ steps: [cell, prices("BTC"), final("Two.")] });
    const result = await runTurn(second.runtime, { ...second.openConversation({ conversation }), question: "Second?", model });
    expect([result.conversationId, result.grounding.failures]).toEqual([id, []]);
    expect(conversation.evidence.aliases()).toEqual(["get_prices_1", "get_prices_1_text", "result_1", "get_prices_2", "get_prices_2_text"]);
    expect(new TextDecoder().decode(conversation.evidence.get("result_1")!.read())).toBe(String(evidence.get("get_prices_1")!.shape.rows));
    expect(JSON.stringify(model.stepCalls[0]!.prompt)).toContain("First?");
    expect(conversation.exchanges.map(({ question }) => question)).toEqual(["First?", "Second?"]);
  });
});
