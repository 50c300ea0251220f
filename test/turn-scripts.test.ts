import { afterAll, describe, expect, test, vi } from "vitest";
import { cacheDirectory } from "../src/config/environment.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { turnEventSchema } from "../src/protocol/turn-events.ts";
import { turnResultSchema, type TurnResult } from "../src/protocol/turn-result.ts";
import type { ToolListing, ToolSource } from "../src/tools/backend-tool.ts";
import { createLocalSource, type LocalTool } from "../src/tools/create-local-source.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import {
  call,
  final,
  getPrices,
  readDataset,
  scriptedModel,
  testTurn,
  type StepReply,
  type TestTurn,
  type TestTurnOptions,
} from "./turn-fixtures.ts";

/** Calls of `execute` scripts count like calls of the model. Uses the real engine. */
const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
afterAll(() => runtime.close());

async function run(steps: readonly StepReply[], options: Partial<TestTurnOptions> = {}): Promise<TestTurn & { result: TurnResult }> {
  const turn = testTurn({ ...options, model: scriptedModel({ steps }) });
  const result = await runTurn(runtime, turn.request);
  expect(turnResultSchema.parse(result)).toEqual(result);
  for (const event of turn.events) turnEventSchema.parse(event);
  return { ...turn, result };
}

const script = (code: string): StepReply => call("execute", { code });
const broken: LocalTool = {
  ...getPrices,
  name: "get_broken",
  annotations: {},
  execute: () => Promise.reject(Object.assign(new Error("HTTP 503"), { status: 503 })),
};
const empty: LocalTool = { ...getPrices, name: "get_nothing", execute: () => [] };
const tools = [getPrices, broken, empty];

describe("the calls of a script", () => {
  test("appear in the trace, the grounding, the dataset and the events, each with how it ended", async () => {
    const code = `prices = await call_tool("get_prices", {"symbol": "A"})
try:
    await call_tool("local__get_broken", {"symbol": "B"})
except Exception:
    pass
return len(prices)`;
    const { result, of, request } = await run([script(code), final("300 prices.")], { tools });
    expect(result.trace[0]!.calls).toEqual([
      { tool: "execute", alias: "get_prices_1", durationMs: expect.any(Number), status: "ok", artifacts: [] },
      { tool: "get_prices", within: "execute", alias: "get_prices_1", durationMs: expect.any(Number), status: "ok", artifacts: [] },
      { tool: "get_broken", within: "execute", durationMs: expect.any(Number), status: "error", artifacts: [] },
    ]);
    expect(result.grounding).toEqual({
      toolCallAttemptCount: 3,
      toolCallSuccessCount: 2,
      toolCallFailureCount: 1,
      failures: [{ tool: "get_broken", reason: expect.stringContaining("HTTP 503") }],
    });
    expect(result.confidence).toEqual({ level: "medium", reason: "1 tool call failed." });
    expect(of("tool-start").map(({ callId, tool, server, within, arguments: given }) => [callId, tool, server, within, given])).toEqual([
      ["call-1", "execute", undefined, undefined, { code }],
      ["call-1/1", "get_prices", "local", "call-1", { symbol: "A" }],
      ["call-1/2", "get_broken", "local", "call-1", { symbol: "B" }],
      ["call-2", "final_response", undefined, undefined, undefined],
    ]);
    expect(of("tool-end").map(({ callId, status, alias, rows }) => [callId, status, alias, rows])).toEqual([
      ["call-1/1", "ok", "get_prices_1", 300],
      ["call-1/2", "error", undefined, undefined],
      ["call-1", "ok", "get_prices_1", 300],
      ["call-2", "ok", undefined, undefined],
    ]);
    const { stages } = JSON.parse(await readDataset(request, result)) as { stages: { calls: { tool: string; server?: string }[] }[] };
    expect(stages[0]!.calls.map(({ tool, server }) => [tool, server])).toEqual([
      ["get_prices", "local"],
      ["get_broken", "local"],
      ["execute", undefined],
    ]);
  });

  test("beyond the limit of the script are refused, recorded and emitted like the others", async () => {
    const code = `async def ask(symbol):
    try:
        await call_tool("get_prices", {"symbol": symbol})
    except RuntimeError as e:
        return "SANDBOX_TOOL_CALL_LIMIT" in str(e)
return [await ask("A"), await ask("B")]`;
    const { result, of } = await run([script(code), final("Some prices.")], { codeMode: { limits: { toolCalls: 1 } } });
    expect(result.trace[0]!.calls.map(({ tool, status }) => [tool, status])).toEqual([
      ["execute", "ok"],
      ["get_prices", "ok"],
      ["get_prices", "refused"],
    ]);
    expect(of("tool-end").map(({ callId, status, reason }) => [callId, status, reason])).toEqual([
      ["call-1/1", "ok", undefined],
      ["call-1/2", "refused", "A script may make 1 tool calls. This call was refused."],
      ["call-1", "ok", undefined],
      ["call-2", "ok", undefined],
    ]);
  });

  test("look up their tool once, like those of the model", async () => {
    const catalog = createToolCatalog({ sources: [createLocalSource([getPrices])] });
    const resolve = vi.spyOn(catalog, "resolve");
    await run([call("get_prices", { symbol: "A" }), final("Some prices.")], { catalog });
    expect(resolve).toHaveBeenCalledTimes(1);
    await run([script('return len(await call_tool("get_prices", {"symbol": "A"}))'), final("Some prices.")], { catalog });
    expect(resolve).toHaveBeenCalledTimes(2);
  });

  test("emit no events after the turn has ended", async () => {
    const abort = new AbortController();
    const { promise: gave, resolve: give } = Promise.withResolvers<unknown>();
    const deaf: LocalTool = { ...getPrices, execute: () => gave };
    const { result, events } = await run([script(`return await call_tool("get_prices", {})`)], {
      tools: [deaf],
      signal: abort.signal,
      onEvent: (event) => void (event.type === "tool-start" && event.within !== undefined && setTimeout(() => abort.abort(), 20)),
    });
    give([1]);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(result.outcome.stopReason).toBe("aborted");
    expect(result.trace[0]!.calls.map(({ tool, status }) => [tool, status])).toEqual([
      ["execute", "aborted"],
      ["get_prices", "aborted"],
    ]);
    expect(events.at(-1)?.type).toBe("turn-end");
  });
});

describe("the guards", () => {
  const many = (count: number): LocalTool[] => Array.from({ length: count }, (_, at) => ({ ...getPrices, name: `tool_${at}` }));
  const caught = (n: number): StepReply =>
    script(`try:\n    await call_tool("get_offers", {"n": ${n}})\nexcept Exception as error:\n    return str(error)[:20]`);

  test("count identical calls of scripts and of the model together, and refuse the third", async () => {
    const executed: unknown[] = [];
    const spy: LocalTool = { ...getPrices, execute: (args) => (executed.push(args), [{ price: 1 }]) };
    const again = (n: number): StepReply => script(`r = await call_tool("get_prices", {"symbol": "A"})\nreturn ${n}`);
    const { result } = await run([again(1), call("get_prices", { symbol: "A" }), again(2)], { tools: [spy] });
    expect(executed).toHaveLength(2);
    expect(result.outcome.stopReason).toBe("bounded_repeat_guardrail");
    expect(result.gaps[0]!.detail).toBe("get_prices was called three times with the same arguments. The third call was refused.");
    expect(result.trace[2]!.calls.map(({ tool, status }) => [tool, status])).toEqual([
      ["execute", "error"],
      ["get_prices", "refused"],
    ]);
  });

  test("count the repeated calls of one script once", async () => {
    const loop = script(`for _ in range(5):\n    r = await call_tool("get_prices", {"symbol": "A"})\nreturn len(r)`);
    const { result } = await run([loop, final("Done.")]);
    expect([result.outcome.stopReason, result.grounding.toolCallSuccessCount]).toEqual(["complete_answer", 6]);
  });

  test("end a turn after empty results of three scripts; the calls of one script count once", async () => {
    const search = (n: number): StepReply =>
      script(`for i in range(4):\n    await call_tool("get_nothing", {"symbol": "S" + str(i) + "-${n}"})\nreturn ${n}`);
    const once = await run([search(1), final("Nothing.")], { tools });
    expect(once.result.outcome.stopReason).toBe("complete_answer");
    const threeTimes = await run([search(1), search(2), search(3), final("Nothing.")], { tools });
    expect(threeTimes.result.outcome.stopReason).toBe("bounded_empty_result");
    expect(threeTimes.result.gaps[0]!.detail).toBe("Tools returned 3 empty results in a row. The last one was get_nothing.");
  });

  test("end a turn whose scripts call a server that keeps failing, even if they catch the errors", async () => {
    const attempt = (n: number): StepReply =>
      script(`try:\n    await call_tool("get_broken", {"symbol": "S${n}"})\nexcept Exception as error:\n    return str(error)[:20]`);
    const { result } = await run([attempt(1), attempt(2), attempt(3), final("No.")], { tools });
    expect([result.outcome.stopReason, result.usage.steps]).toEqual(["bounded_upstream_failure", 3]);
    expect(result.gaps[0]!.detail).toMatch(/^The server local failed 3 times in a row\. Last error: /);
  });

  test.each([
    ["scripts", (n: number): StepReply => script(`return await call_tool("get_offers", {"n": ${n}})`), []],
    ["scripts that catch it", caught, []],
    [
      "calls by name, past forty tools",
      (n: number): StepReply => call("call_mcp_skill", { tool: "get_offers", arguments: { n } }),
      many(41),
    ],
    ["calls by full name", (n: number): StepReply => call("call_mcp_skill", { tool: "shop__get_offers", arguments: { n } }), many(41)],
  ])("end a turn when a server goes down, for %s", async (_, attempt, more) => {
    const { tools: offers } = await createLocalSource([{ ...getPrices, name: "get_offers" }], { name: "shop" }).tools();
    let isThere = true;
    const away: ToolListing = { tools: [], gap: { server: "shop", reason: "It ended with 1." } };
    const shop: ToolSource = {
      name: "shop",
      tools: async () => (isThere ? { tools: offers, gap: null } : away),
      [Symbol.asyncDispose]: async () => {},
    };
    const catalog = createToolCatalog({ sources: [createLocalSource([getPrices, ...more]), shop] });
    const leave = ({ type }: { type: string }): void => void (type === "tool-start" && (isThere = false));
    const { result } = await run([attempt(1), attempt(2), attempt(3), final("No.")], { catalog, onEvent: leave });
    expect([result.outcome.stopReason, result.usage.steps]).toEqual(["bounded_upstream_failure", 3]);
    expect(result.gaps[0]!.detail).toMatch(
      /^The server shop failed 3 times in a row\. Last error: The server "shop" of the tool "(?:shop__)?get_offers" cannot be used now: It ended with 1\.$/,
    );
  });

  test("end a turn whose scripts keep calling unknown tools", async () => {
    const callUnknown = (n: number): StepReply => script(`return await call_tool("get_weather", {"city": "C${n}"})`);
    const { result } = await run([callUnknown(1), callUnknown(2), callUnknown(3)]);
    expect(result.outcome.stopReason).toBe("capability_miss");
    expect(result.gaps[0]!.detail).toBe("The model requested unknown tools 3 times. The last one was get_weather.");
  });
});
