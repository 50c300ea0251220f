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
  type Said,
  type TestTurn,
  type TestTurnOptions,
} from "./turn-fixtures.ts";

/** What scripts of `execute` call counts as what the model calls itself. The engine is the real one. */
const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
afterAll(() => runtime.close());

async function run(steps: readonly Said[], options: Partial<TestTurnOptions> = {}): Promise<TestTurn & { result: TurnResult }> {
  const turn = testTurn({ ...options, model: scriptedModel({ steps }) });
  const result = await runTurn(runtime, turn.request);
  expect(turnResultSchema.parse(result)).toEqual(result);
  for (const event of turn.events) turnEventSchema.parse(event);
  return { ...turn, result };
}

const script = (code: string): Said => call("execute", { code });
const broken: LocalTool = {
  ...getPrices,
  name: "get_broken",
  annotations: {},
  execute: () => Promise.reject(Object.assign(new Error("HTTP 503"), { status: 503 })),
};
const empty: LocalTool = { ...getPrices, name: "get_nothing", execute: () => [] };
const tools = [getPrices, broken, empty];

describe("the calls of a script", () => {
  test("are in the trace, in the grounding, in the dataset and among the events, each with what came of it", async () => {
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

  test("past the script's limit are refused, recorded and told of like the others", async () => {
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

  test("and those of the model look up their tool once", async () => {
    const catalog = createToolCatalog({ sources: [createLocalSource([getPrices])] });
    const resolve = vi.spyOn(catalog, "resolve");
    await run([call("get_prices", { symbol: "A" }), final("Some prices.")], { catalog });
    expect(resolve).toHaveBeenCalledTimes(1);
    await run([script('return len(await call_tool("get_prices", {"symbol": "A"}))'), final("Some prices.")], { catalog });
    expect(resolve).toHaveBeenCalledTimes(2);
  });

  test("are not told of after the turn, when it was ended meanwhile", async () => {
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
  const caught = (n: number): Said =>
    script(`try:\n    await call_tool("get_offers", {"n": ${n}})\nexcept Exception as error:\n    return str(error)[:20]`);

  test("count the same call of three scripts and of the model together; the third is not made", async () => {
    const asked: unknown[] = [];
    const spy: LocalTool = { ...getPrices, execute: (args) => (asked.push(args), [{ price: 1 }]) };
    const again = (n: number): Said => script(`r = await call_tool("get_prices", {"symbol": "A"})\nreturn ${n}`);
    const { result } = await run([again(1), call("get_prices", { symbol: "A" }), again(2)], { tools: [spy] });
    expect(asked).toHaveLength(2);
    expect(result.outcome.stopReason).toBe("bounded_repeat_guardrail");
    expect(result.gaps[0]!.detail).toBe("get_prices was called three times with the same arguments. The third call was refused.");
    expect(result.trace[2]!.calls.map(({ tool, status }) => [tool, status])).toEqual([
      ["execute", "error"],
      ["get_prices", "refused"],
    ]);
  });

  test("take what one script asks again and again as once: its loop ends with it", async () => {
    const loop = script(`for _ in range(5):\n    r = await call_tool("get_prices", {"symbol": "A"})\nreturn len(r)`);
    const { result } = await run([loop, final("Done.")]);
    expect([result.outcome.stopReason, result.grounding.toolCallSuccessCount]).toEqual(["complete_answer", 6]);
  });

  test("end a turn whose scripts find nothing three times; one that asked often counts once", async () => {
    const search = (n: number): Said =>
      script(`for i in range(4):\n    await call_tool("get_nothing", {"symbol": "S" + str(i) + "-${n}"})\nreturn ${n}`);
    const once = await run([search(1), final("Nothing.")], { tools });
    expect(once.result.outcome.stopReason).toBe("complete_answer");
    const thrice = await run([search(1), search(2), search(3), final("Nothing.")], { tools });
    expect(thrice.result.outcome.stopReason).toBe("bounded_empty_result");
    expect(thrice.result.gaps[0]!.detail).toBe("Tools returned 3 empty results in a row. The last one was get_nothing.");
  });

  test("end a turn whose scripts meet a server that keeps failing, also where they catch it", async () => {
    const attempt = (n: number): Said =>
      script(`try:\n    await call_tool("get_broken", {"symbol": "S${n}"})\nexcept Exception as error:\n    return str(error)[:20]`);
    const { result } = await run([attempt(1), attempt(2), attempt(3), final("No.")], { tools });
    expect([result.outcome.stopReason, result.usage.steps]).toEqual(["bounded_upstream_failure", 3]);
    expect(result.gaps[0]!.detail).toMatch(/^The server local failed 3 times in a row\. Last error: /);
  });

  test.each([
    ["scripts", (n: number): Said => script(`return await call_tool("get_offers", {"n": ${n}})`), []],
    ["scripts that catch it", caught, []],
    ["calls by name, past forty tools", (n: number): Said => call("call_mcp_skill", { tool: "get_offers", arguments: { n } }), many(41)],
    ["calls by full name", (n: number): Said => call("call_mcp_skill", { tool: "shop__get_offers", arguments: { n } }), many(41)],
  ])("end a turn when a server went away, for %s", async (_, attempt, more) => {
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

  test("end a turn whose scripts keep calling what is not there", async () => {
    const lost = (n: number): Said => script(`return await call_tool("get_weather", {"city": "C${n}"})`);
    const { result } = await run([lost(1), lost(2), lost(3)]);
    expect(result.outcome.stopReason).toBe("capability_miss");
    expect(result.gaps[0]!.detail).toBe("The model requested unknown tools 3 times. The last one was get_weather.");
  });
});
