import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { defaultExecuteLimits } from "../src/execute/engine.ts";
import { createInvokeTool } from "../src/execute/invoke-tool.ts";
import { createMontyEngine, type MontyEngine } from "../src/execute/monty/create-monty-engine.ts";
import { runExecute, type ExecuteAnswer } from "../src/execute/run-execute.ts";
import { fixtureEntry, openHttpFixture, openSource, type TestSource } from "../src/tools/mcp/fixtures/open-fixture.ts";
import type { EvidenceItem, EvidenceStore } from "../src/evidence/evidence-store.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";
import { watchEventLoop } from "./fixtures/event-loop.ts";

/** Twice the CPU time of parsing 50 MB, now and on this machine. Reading the message in the event loop takes many times as much. */
const maxBlockedMs = 2 * measureParsing();
const memoryBytes = 1_500_000_000;
const limits = { ...defaultExecuteLimits, memoryBytes, executionMs: 120_000 };

describe("a tool's answer of 50 MB", { timeout: 240_000 }, () => {
  let engine: MontyEngine;
  beforeAll(async () => {
    engine = createMontyEngine({ poolSize: 1, memoryBytes });
    await engine.warm();
  });
  afterAll(() => engine.close());

  async function fetchRows(source: TestSource, as: string, megabytes = 50): Promise<{ answer: ExecuteAnswer; evidence: EvidenceStore }> {
    await using catalog = createToolCatalog({ sources: [source.source] });
    await catalog.list();
    const evidence = createEvidenceStore();
    const invoke = createInvokeTool({ catalog, policy: createToolPolicy() });
    const code = `return len(await call_tool("rows", {"megabytes": ${megabytes}, "as": "${as}"}))`;
    const answer = await runExecute({ code, engines: { monty: engine }, limits, evidence, invoke });
    return { answer, evidence };
  }

  it.each([
    ["over stdio, structured", "structured", "stdio"],
    ["over stdio, as prose", "words", "stdio"],
    ["over HTTP, as JSON text", "text", "http"],
    ["over HTTP as events, as JSON text", "text", "sse"],
  ])("does not block the event loop on its way to a script, to evidence and to a preview: %s", async (_, as, way) => {
    await using http = way === "stdio" ? null : await openHttpFixture("sdk-server", "--http", "0", ...(way === "sse" ? ["--sse"] : []));
    await using source = openSource({ server: http === null ? fixtureEntry("sdk-server") : { url: http.url } });
    await source.source.tools();
    const eventLoop = watchEventLoop();
    const { answer, evidence } = await fetchRows(source, as);
    const [{ alias } = { alias: "" }] = answer.aliases;
    const preview = evidence.preview(alias);
    const { sha256, bytes } = evidence.get(alias)!;
    const blockedMs = eventLoop.stop();

    expect(answer.error).toBeUndefined();
    expect(Number(answer.resultJson)).toBe(
      { structured: 1, text: rowsOf(evidence.get(alias)!), words: charactersOf(evidence.get(alias)!) }[as],
    );
    expect(bytes).toBeGreaterThan(50_000_000);
    expect([sha256.length, preview.bytes <= 4096]).toEqual([64, true]);
    expect(blockedMs).toBeLessThan(maxBlockedMs);
  });

  it("becomes a failure with its text if it has isError, without blocking the event loop", async () => {
    await using source = openSource({ server: fixtureEntry("sdk-server") });
    await source.source.tools();
    const eventLoop = watchEventLoop();
    const { answer, evidence } = await fetchRows(source, "error");
    expect(eventLoop.stop()).toBeLessThan(maxBlockedMs);
    expect([answer.status, evidence.aliases(), answer.error?.summary?.toString().slice(0, 46)]).toEqual([
      "error",
      [],
      'RuntimeError: ToolError: words [{"id":0,"city"',
    ]);
  });
});

it("keeps a large value of a local function unchanged, without blocking the event loop", async () => {
  const value = Array.from({ length: 400_000 }, (_, id) => ({ id, city: "Zürich", price: id / 100, isOpen: id % 3 === 0 }));
  const evidence = createEvidenceStore();
  const eventLoop = watchEventLoop();
  const item = await evidence.keep({ tool: "local__rows", output: value, as: "value" });
  expect(eventLoop.stop()).toBeLessThan(maxBlockedMs);
  expect(Buffer.from(item.read()).toString("utf8") === JSON.stringify(value)).toBe(true);
  expect([item.shape.rows, item.precisionLoss]).toEqual([400_000, undefined]);
});

function measureParsing(): number {
  const value = Array.from({ length: 700_000 }, (_, id) => ({ id, city: "Zürich", price: id / 100, isOpen: id % 3 === 0 }));
  const text = Buffer.from(JSON.stringify(value));
  const before = process.threadCpuUsage();
  JSON.parse(text.toString("utf8"));
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

function rowsOf({ shape, format }: EvidenceItem): number {
  return format === "json" ? (shape.rows ?? -1) : -1;
}

function charactersOf({ shape }: EvidenceItem): number {
  return shape.characters ?? -1;
}
