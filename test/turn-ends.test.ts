import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { cacheDirectory } from "../src/config/environment.ts";
import { createMemoryStore } from "../src/artifacts/artifact-store.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { toEvidenceRecord } from "../src/evidence/evidence-record.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { parseProbe } from "../src/protocol/probe.ts";
import type { TurnEvent } from "../src/protocol/turn-events.ts";
import { turnResultSchema, type TurnResult } from "../src/protocol/turn-result.ts";
import type { LocalTool } from "../src/tools/create-local-source.ts";
import type { TurnRuntime } from "../src/turn/turn-request.ts";
import { createConversation } from "../src/turn/create-conversation.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { killSandbox, listSandboxResources } from "./fixtures/host-processes.ts";
import { openLoopbackModel, type Reply } from "./fixtures/loopback-model.ts";
import { call, final, getPrices, readDataset, scriptedModel, testTurn, type TestTurn, type TestTurnOptions } from "./turn-fixtures.ts";

/** Uses the default driver of this machine; without one, these tests fail. */
const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
afterAll(() => runtime.close());

/** After a turn, no sandbox slot is taken, no sandbox process runs, and no sandbox directory exists. */
async function expectNothingLeft(): Promise<void> {
  expect(runtime.gate.taken).toBe(0);
  await expect.poll(listSandboxResources, { timeout: 30_000, interval: 50 }).toEqual({ processes: [], leases: [] });
}

const contract = (expectedArtifacts: string[] = []): object => ({
  operation: "derive_metric",
  reason: "A number is asked for.",
  inputAliases: ["get_prices_1"],
  expectedArtifacts,
});
const cell = (code: string, artifacts: string[] = []): { tool: string; input: object } => ({
  tool: "code_interpreter",
  input: { code, postProcessingContract: contract(artifacts) },
});
const fetchPrices = { calls: [{ tool: "get_prices", input: { symbol: "A" } }] };
const draw =
  "df = to_frame(get_prices_1)\nfig, ax = plt.subplots()\nax.plot(df.day, df.price)\nsave_figure('The price of A by day', title='Price of A')\nset_result(round(df.price.mean(), 2))";

async function over(
  replies: readonly Reply[],
  options: Partial<TestTurnOptions> = {},
): Promise<TestTurn & { result: TurnResult; gone: number }> {
  await using loopback = await openLoopbackModel(replies);
  const turn = testTurn({ ...options, model: loopback.model });
  const result = await runTurn(runtime, turn.request);
  expect(turnResultSchema.parse(result)).toEqual(result);
  expect(turn.events.at(-1)?.type).toBe("turn-end");
  await expectNothingLeft();
  return { ...turn, result, gone: loopback.gone() };
}

describe("over the wire", () => {
  test("a turn fetches, derives, draws and answers", async () => {
    const { result, of } = await over(
      [
        fetchPrices,
        { calls: [cell(`print("rows", len(get_prices_1))\n${draw}`, ["image"])] },
        { calls: [{ tool: "final_response", input: { answer: "It is 102.99." } }] },
        { text: "The mean price is 102.99. Figure 1 has it by day." },
      ],
      { question: "Plot the price of A." },
    );
    expect(result.outcome.stopReason).toBe("complete_answer");
    expect(result.answer).toBe("The mean price is 102.99. Figure 1 has it by day.");
    expect(result.artifacts.map(({ kind, title }) => [kind, title])).toEqual([["image", "Price of A"]]);
    expect(result.gaps).toEqual([]);
    const { callId } = of("tool-start").find(({ tool }) => tool === "code_interpreter")!;
    expect(of("cell-start")).toEqual([
      {
        type: "cell-start",
        callId,
        step: 2,
        tool: "code_interpreter",
        code: `print("rows", len(get_prices_1))\n${draw}`,
        postProcessingContract: contract(["image"]),
      },
    ]);
    expect(of("cell-output")).toEqual([{ type: "cell-output", callId, stream: "stdout", text: "rows 300\n" }]);
    expect(result.usage.sandboxMs).toBeGreaterThan(0);
  });

  test("an error response of the provider ends the turn with model_error and its message", async () => {
    const { result } = await over([{ status: 400, body: { error: { message: "no such model" } } }]);
    expect(result.outcome.stopReason).toBe("model_error");
    expect(result.gaps).toEqual([
      {
        code: "model_error",
        severity: "major",
        detail:
          "loopback:m refused the request (HTTP 400): no such model. Choose a model with tools and streaming, or ask a shorter question.",
      },
    ]);
    expect(result.answer).toContain("no such model");
  });

  test("a request to a busy provider is retried", async () => {
    const { result } = await over([{ status: 503 }, { calls: [{ tool: "final_response", input: { answer: "Yes." } }] }, { text: "Yes." }]);
    expect(result.outcome.stopReason).toBe("complete_answer");
  });

  test("a connection that breaks mid-stream ends the turn; the result has everything fetched and drawn before", async () => {
    const { result } = await over([fetchPrices, { calls: [cell(draw, ["image"])] }, { cut: "Let me think" }], {
      question: "Plot the price of A.",
    });
    expect(result.outcome.stopReason).toBe("model_error");
    expect(result.gaps.map(({ code }) => code)).toEqual(["model_error"]);
    expect(result.artifacts).toHaveLength(1);
    expect(result.answer).toContain("Figure 1: Price of A.");
    expect(result.confidence.level).toBe("low");
  });

  test("arguments that break off end the turn, and the call does not run", async () => {
    const { result } = await over([{ truncated: { tool: "get_prices", input: '{"symbol": "A' } }]);
    expect(result.outcome.stopReason).toBe("model_error");
    expect(result.grounding.toolCallSuccessCount).toBe(0);
  });

  test("a provider that hangs is abandoned at the time limit", async () => {
    const { result, gone } = await over([fetchPrices, { hang: true }], { budgets: { wallMs: 5_000 } });
    expect(result.outcome.stopReason).toBe("bounded_time");
    expect(result.answer).toContain("get_prices_1: from local__get_prices, 300 rows");
    expect(gone).toBeGreaterThan(0);
  });

  test("an abort by the caller also aborts the request to the provider", async () => {
    const abort = new AbortController();
    const { result } = await over([{ hang: true }], {
      signal: abort.signal,
      onEvent: ({ type }) => type === "step-start" && setTimeout(() => abort.abort("client gone"), 100),
    }).catch((error: unknown) => Promise.reject(error as Error));
    expect(result.outcome.stopReason).toBe("aborted");
  });
});

describe("a turn that is aborted", () => {
  const ranFor = async (
    options: Partial<TestTurnOptions> & {
      steps: Parameters<typeof scriptedModel>[0]["steps"];
      at: (event: { type: string; tool?: string }) => boolean;
    },
  ) => {
    const { steps, at, ...rest } = options;
    const abort = new AbortController();
    const turn = testTurn({
      ...rest,
      model: scriptedModel({ plan: { chartIntent: "explicit" }, steps }),
      signal: abort.signal,
      onEvent: (event) => {
        if (at(event)) setTimeout(() => abort.abort(new Error("the user left")), 50);
      },
    });
    const started = performance.now();
    const result = await runTurn(runtime, turn.request);
    await expectNothingLeft();
    return { result, tookMs: performance.now() - started };
  };

  test("during a cell stops the cell, and says why there is no chart", async () => {
    const { result } = await ranFor({
      steps: [fetchPrices, { calls: [cell("print('begun')\nwhile True: pass", ["image"])] }],
      at: ({ type }) => type === "cell-output",
    });
    expect(result.outcome.stopReason).toBe("aborted");
    expect(result.gaps.map(({ code }) => code)).toEqual(["aborted", "chart_not_rendered"]);
    expect(result.trace[1]!.calls[0]!.status).toBe("aborted");
  });

  test("does not wait for a tool that ignores its signal", async () => {
    const deaf: LocalTool = { ...getPrices, execute: () => sleep(60_000, [], { ref: false }) };
    const { result, tookMs } = await ranFor({ steps: [fetchPrices], tools: [deaf], at: ({ type }) => type === "tool-start" });
    expect(result.outcome.stopReason).toBe("aborted");
    expect(tookMs).toBeLessThan(20_000);
  });

  test("does not wait for a runtime that hangs", async () => {
    const abort = new AbortController();
    const turn = testTurn({ model: scriptedModel({ steps: [final("No.")] }), signal: abort.signal });
    const librarianPrompt = (): Promise<never> => {
      setTimeout(() => abort.abort(), 20);
      return Promise.withResolvers<never>().promise;
    };
    const result = await runTurn({ ...runtime, librarianPrompt }, turn.request);
    expect(result.outcome.stopReason).toBe("aborted");
    expect(result.gaps.map(({ code }) => code)).toEqual(["aborted"]);
  });

  test("before it starts still has a result", async () => {
    const turn = testTurn({ model: scriptedModel({ steps: [final("No.")] }), signal: AbortSignal.abort() });
    const result = await runTurn(runtime, turn.request);
    expect(result.outcome.stopReason).toBe("aborted");
    expect(result.usage.steps).toBe(0);
  });

  test("while the answer is being written keeps the text so far", async () => {
    const abort = new AbortController();
    await using loopback = await openLoopbackModel([
      { calls: [{ tool: "final_response", input: { answer: "The draft." } }] },
      { hang: true },
    ]);
    const turn = testTurn({
      model: loopback.model,
      signal: abort.signal,
      onEvent: (event) => {
        if (event.type === "tool-end") setTimeout(() => abort.abort(), 300);
      },
    });
    const result = await runTurn(runtime, turn.request);
    expect(result.outcome.stopReason).toBe("aborted");
    expect(result.answer).toBe("The draft.\n\nThe turn was aborted while the answer was being written.");
  });
});

describe("calls that still run at the end of a turn", () => {
  /** A slow store delays the publication of a figure, because a store takes no signal. */
  const drawnWith = async (put: () => Promise<void>): Promise<{ result: TurnResult; events: TurnEvent[]; waitedMs: number }> => {
    let abortedAt = 0;
    const abort = new AbortController();
    const store = createMemoryStore();
    const artifacts = {
      ...store,
      put: async (artifact: Parameters<typeof store.put>[0]) => {
        abortedAt = performance.now();
        abort.abort(new Error("the user left"));
        await put();
        return await store.put(artifact);
      },
    };
    const steps = [fetchPrices, { calls: [cell(draw, ["image"])] }];
    const model = scriptedModel({ plan: { chartIntent: "explicit" }, steps });
    const turn = testTurn({ artifacts, model, signal: abort.signal });
    const result = await runTurn(runtime, turn.request);
    const waitedMs = performance.now() - abortedAt;
    await expectNothingLeft();
    return { result, events: turn.events, waitedMs };
  };

  test("and finish within 5 s are awaited, and their results count", async () => {
    const { result } = await drawnWith(() => sleep(500));
    expect(result.outcome.stopReason).toBe("aborted");
    expect(result.trace[1]!.calls.map(({ tool, status, artifacts }) => [tool, status, artifacts.length])).toEqual([
      ["code_interpreter", "ok", 1],
    ]);
    expect(result.gaps.map(({ code }) => code)).toEqual(["aborted"]);
  });

  test("and ignore their signal are abandoned after 5 s", { timeout: 120_000 }, async () => {
    const { promise: never } = Promise.withResolvers<void>();
    const { result, events, waitedMs } = await drawnWith(() => never);
    expect(waitedMs).toBeGreaterThan(4_900); // the turn waited
    expect(waitedMs).toBeLessThan(45_000); // but not much longer; the margin is for a busy machine
    expect(result.outcome.stopReason).toBe("aborted");
    expect(result.trace[1]!.calls).toEqual([
      { tool: "code_interpreter", intent: "A number is asked for.", durationMs: 0, status: "aborted", artifacts: [] },
    ]);
    expect(result.grounding.failures).toEqual([{ tool: "code_interpreter", reason: "it was still running when the turn ended" }]);
    expect(result.gaps.map(({ code }) => code)).toEqual(["aborted", "chart_not_rendered"]);
    expect(events.at(-1)?.type).toBe("turn-end");
  });

  test("do not start when the model's reply breaks off after them, and the result says so", async () => {
    const turn = testTurn({ model: scriptedModel({ steps: [{ ...fetchPrices, isCut: true }] }) });
    const result = await runTurn(runtime, turn.request);
    expect(result.outcome.stopReason).toBe("model_error");
    expect(result.trace[0]!.calls).toEqual([{ tool: "get_prices", durationMs: 0, status: "aborted", artifacts: [] }]);
    expect(result.grounding.failures).toEqual([{ tool: "get_prices", reason: "the model's reply ended before the call could run" }]);
  });

  test("and finish after the turn leave no evidence", async () => {
    const { promise: gave, resolve: give } = Promise.withResolvers<unknown>();
    const deaf: LocalTool = { ...getPrices, execute: () => gave };
    const conversation = createConversation();
    const abort = new AbortController();
    const turn = testTurn({
      tools: [deaf],
      conversation,
      model: scriptedModel({ steps: [fetchPrices] }),
      signal: abort.signal,
      onEvent: ({ type }) => type === "tool-start" && setTimeout(() => abort.abort(), 20),
    });
    const result = await runTurn(runtime, turn.request);
    expect(result.trace[0]!.calls).toMatchObject([{ tool: "get_prices", status: "aborted" }]);
    give([{ price: 1 }]);
    await sleep(20);
    expect(conversation.evidence.aliases()).toEqual([]);
    expect(turn.of("tool-end")).toHaveLength(1);
    expect(turn.events.at(-1)?.type).toBe("turn-end");
  });
});

describe("a conversation whose turns act for different subjects", () => {
  test("keeps evidence and answers for the same subject; another one finds only the files", async () => {
    const conversation = createConversation();
    const ask = async (subject: string | null, question: string): Promise<string> => {
      await using loopback = await openLoopbackModel([fetchPrices, { text: `${question} 4711.` }, { text: "Done." }]);
      const turn = testTurn({ conversation, subject, question, model: loopback.model });
      await runTurn(runtime, turn.request);
      return JSON.stringify(loopback.requests);
    };
    await ask("ann", "First?");
    expect(await ask("ann", "Second?")).toContain("First?");
    expect(conversation.evidence.aliases()).toEqual(["get_prices_1", "get_prices_2"]);
    const ofBob = await ask("bob", "Third?");
    expect(ofBob).not.toMatch(/First|Second|get_prices_2/);
    expect([conversation.evidence.aliases(), conversation.exchanges.map(({ question }) => question)]).toEqual([
      ["get_prices_1"],
      ["Third?"],
    ]);
    expect(await ask(null, "Fourth?")).not.toContain("Third?");
  });

  test("a turn that still runs for the earlier subject adds nothing to what the next one finds", async () => {
    const conversation = createConversation();
    const ofAnn = conversation.forSubject("ann");
    ofAnn.evidence.add({ tool: "get", output: [1] });
    const ofBob = conversation.forSubject("bob");
    ofAnn.evidence.add({ tool: "get", output: [2] });
    ofAnn.add({ turnId: "1", question: "of ann", answer: "" });
    ofBob.add({ turnId: "2", question: "of bob", answer: "" });
    expect([ofAnn.evidence.aliases(), ofBob.evidence.aliases()]).toEqual([["get_1", "get_2"], []]);
    expect([ofAnn, ofBob, conversation].map(({ exchanges }) => exchanges.map(({ question }) => question))).toEqual([
      ["of ann"],
      ["of bob"],
      ["of bob"],
    ]);
  });
});

describe("a failure", () => {
  test("of a listener is ignored", async () => {
    const turn = testTurn({
      model: scriptedModel({ steps: [call("get_prices"), final("Done.")] }),
      onEvent: () => {
        throw new Error("listener");
      },
    });
    expect((await runTurn(runtime, turn.request)).outcome.stopReason).toBe("complete_answer");
  });

  test("of an asynchronous listener, a probe sink or the conversation is ignored", async () => {
    const rejects: () => void = () => Promise.reject(new Error("later")) as unknown; // possible for a listener without types
    const kept = createConversation();
    const turn = testTurn({
      model: scriptedModel({ steps: [fetchPrices, { calls: [cell("set_result(1)")] }, final("Done.")] }),
      onProbe: rejects,
      conversation: {
        ...kept,
        add: () => {
          throw new Error("disk full");
        },
      },
    });
    const result = await runTurn(runtime, { ...turn.request, onEvent: rejects });
    expect(result.outcome.stopReason).toBe("complete_answer");
    await expectNothingLeft();
  });

  test("to read earlier evidence matters only to calls that need it", async () => {
    const before = createEvidenceStore();
    before.addResult({ json: '{"total":4711}', from: "code_interpreter" });
    const failToRead = (): never => {
      throw new Error("ENOENT");
    };
    const evidence = createEvidenceStore({ restored: [{ record: toEvidenceRecord(before.get("result_1")!), read: failToRead }] });
    const needs = { code: "set_result(result_1)", postProcessingContract: { ...contract(), inputAliases: ["result_1"] } };
    const turn = testTurn({
      conversation: createConversation({ evidence }),
      model: scriptedModel({ steps: [{ calls: [{ tool: "code_interpreter", input: needs }] }, final("It was 4,711.")] }),
    });
    const result = await runTurn(runtime, turn.request);
    expect(result.outcome.stopReason).toBe("complete_answer");
    expect(result.grounding.failures).toEqual([{ tool: "code_interpreter", reason: "ENOENT" }]);
    expect(result.gaps.map(({ code }) => code)).toEqual(["dataset_not_kept", "number_not_in_results"]);
    await expectNothingLeft();
  });

  test("of a probe sink fails at most its call", async () => {
    const turn = testTurn({
      model: scriptedModel({ steps: [fetchPrices, { calls: [cell("set_result(1)")] }, final("Done.")] }),
      onProbe: () => {
        throw new Error("sink");
      },
    });
    const result = await runTurn(runtime, turn.request);
    expect(result.outcome.stopReason).toBe("complete_answer");
    await expectNothingLeft();
  });

  test("of the dataset store or the artifact store becomes a gap", async () => {
    const broken = (): Promise<never> => Promise.reject(new Error("disk full"));
    const turn = testTurn({
      model: scriptedModel({ steps: [fetchPrices, { calls: [cell(draw, ["image"])] }, final("Done.")] }),
      datasets: { put: broken, open: broken },
      artifacts: { put: broken, get: broken },
      question: "Plot it.",
    });
    const result = await runTurn(runtime, turn.request);
    expect(result.dataset).toBeNull();
    expect(result.gaps.map(({ code }) => code)).toEqual(["chart_not_rendered", "dataset_not_kept"]);
    expect(result.gaps[0]!.detail).toBe("The requested chart could not be rendered: code_interpreter failed: disk full.");
    await expectNothingLeft();
  });

  test("to read evidence at the end still gives a result", async () => {
    const store = createEvidenceStore();
    let isUnreadable = false;
    const orThrow = <Value>(value: Value): Value => {
      if (isUnreadable) throw new Error("EIO");
      return value;
    };
    const evidence = { ...store, aliases: () => orThrow(store.aliases()), get: (alias: string) => orThrow(store.get(alias)) };
    const run = async (...steps: Parameters<typeof scriptedModel>[0]["steps"]): Promise<TurnResult> => {
      isUnreadable = false;
      const turn = testTurn({
        conversation: createConversation({ evidence }),
        model: scriptedModel({ steps: [fetchPrices, { calls: [cell("set_result(4711)")] }, ...steps] }),
        onEvent: (event) => void (event.type === "step-start" && event.step === 3 && (isUnreadable = true)),
      });
      const result = await runTurn(runtime, turn.request);
      await expectNothingLeft();
      return result;
    };
    const noGaps = "The gaps could not be determined: EIO";
    const failedToWrite = "The final answer could not be completed. The findings could not be read: EIO. Ask again.";
    const notStored = "The data behind the answer could not be stored: EIO";
    const answered = await run(final("It is 4711."));
    expect(answered.outcome.stopReason).toBe("complete_answer");
    const unchecked = "The numbers in the answer could not be checked: EIO";
    expect(answered.gaps.map(({ detail }) => detail)).toEqual([noGaps, notStored, failedToWrite, unchecked]);
    expect(answered.answer).toBe(`It is 4711.\n\n${noGaps}.\n${notStored}.\n${failedToWrite}\n${unchecked}.`);
    const failed = await run({ error: new Error("boom") });
    expect(failed.outcome.stopReason).toBe("model_error");
    expect(failed.gaps.map(({ code }) => code)).toEqual(["model_error", "gaps_unknown", "dataset_not_kept"]);
    expect(failed.answer).toBe(
      `The question could not be answered.\n\nmock-provider:mock-model-id failed: boom. Ask again; if it repeats, choose another model.\n${noGaps}.\n${notStored}.`,
    );
  });

  test("to close the sandbox becomes a gap", async () => {
    const turn = testTurn({ model: scriptedModel({ steps: [fetchPrices, { calls: [cell("set_result(1)")] }, final("Done.")] }) });
    const stuck: TurnRuntime = {
      ...runtime,
      createTurn(options) {
        const interpreter = runtime.createTurn(options);
        const openCellSession: typeof interpreter.source.openCellSession = async (how) => {
          const session = await interpreter.source.openCellSession(how);
          const close = async (): Promise<never> => {
            await session.close();
            throw new Error("the cgroup is busy");
          };
          return { ...session, close };
        };
        return { ...interpreter, source: { ...interpreter.source, openCellSession } };
      },
    };
    const result = await runTurn(stuck, turn.request);
    expect(result.gaps.map(({ detail }) => detail)).toEqual(["The sandbox could not be closed: the cgroup is busy"]);
    expect(result.outcome.stopReason).toBe("complete_answer");
    await expectNothingLeft();
  });

  test("of a killed sandbox is reported to the model, and the next cell gets a new sandbox", async () => {
    let sandboxId = "";
    const steps = [
      fetchPrices,
      { calls: [cell("kept = 1\nset_result(kept)")] },
      { calls: [cell("print('begun', flush=True)\nwhile True: pass")] },
      { calls: [cell("set_result(2)")] },
      final("Done."),
    ];
    const turn = testTurn({
      model: scriptedModel({ steps }),
      onProbe: (line) => void (sandboxId = String(parseProbe(line)?.fields["sandboxId"] ?? sandboxId)),
      onEvent: ({ type }) => void (type === "cell-output" && killSandbox(sandboxId)),
    });
    const result = await runTurn(runtime, turn.request);
    expect(result.outcome.stopReason).toBe("complete_answer");
    expect(result.trace.map(({ calls }) => calls[0]!.status)).toEqual(["ok", "ok", "error", "ok", "ok"]);
    expect(result.grounding.failures[0]!.reason).toMatch(/The sandbox is gone/);
    await expectNothingLeft();
  });
});

describe("variables", () => {
  test("do not survive their turn; evidence and results do", async () => {
    const conversation = createConversation();
    const run = async (code: string, steps: Parameters<typeof scriptedModel>[0]["steps"]) => {
      const turn = testTurn({ conversation, model: scriptedModel({ steps: [...steps, { calls: [cell(code)] }, final("Done.")] }) });
      return await runTurn(runtime, turn.request);
    };
    await run("kept = 5\nset_result(kept)", [fetchPrices]);
    const result = await run("set_result([result_1, len(get_prices_1), 'kept' in globals()])", []);
    expect(result.grounding.failures).toEqual([]);
    expect(new TextDecoder().decode(conversation.evidence.get("result_2")!.read())).toBe("[5,300,false]");
    await expectNothingLeft();
  });
});

describe("a sparse figure", () => {
  const sparse = (points: string): string =>
    [
      "dates = pd.date_range('2025-01-01', periods=100, freq='D')",
      "values = pd.Series(range(100), index=dates, dtype=float)",
      `values = values.iloc[${points}]`,
      "fig, ax = plt.subplots()",
      "ax.plot(values.index, values.values, label='A')",
      "save_figure('The value of A by day', title='A by day')",
      "set_result(len(values))",
    ].join("\n");
  const edit = (oldText: string, newText: string): { tool: string; input: object } => ({
    tool: "python_code_edit",
    input: { edits: [{ oldText, newText }] },
  });
  const few = "list(range(0, 100, 1))[:20] + [99]";
  const run = async (steps: Parameters<typeof scriptedModel>[0]["steps"]) => {
    const turn = testTurn({ model: scriptedModel({ plan: { chartIntent: "explicit" }, steps }), question: "Plot A." });
    const result = await runTurn(runtime, turn.request);
    await expectNothingLeft();
    return { ...turn, result };
  };

  test("forces python_code_edit in the next step, and the edited figure replaces it", async () => {
    const { result, of, request } = await run([
      fetchPrices,
      { calls: [cell(sparse(few), ["image"])] },
      { calls: [edit(few, "range(100)")] },
      final("Figure 1."),
    ]);
    expect(of("step-start").map(({ forced }) => forced)).toEqual([undefined, undefined, "python_code_edit", undefined]);
    expect(result.artifacts).toHaveLength(1);
    const [first, second] = of("artifact");
    expect(second!.replaces).toEqual([first!.artifact.contentHash]);
    expect(of("cell-start").map(({ tool, code }) => [tool, code])).toEqual([
      ["code_interpreter", sparse(few)],
      ["python_code_edit", sparse("range(100)")],
    ]);
    expect(result.artifacts[0]!.contentHash).toBe(second!.artifact.contentHash);
    expect(result.gaps).toEqual([]);

    const hashes = [first, second].map((event) => event!.artifact.contentHash);
    const dataset = JSON.parse(await readDataset(request, result)) as {
      stages: { calls: { artifacts: string[] }[] }[];
      provenance: { cells: { code: string; artifacts: string[]; replacedIn: number | null }[] };
      artifacts: { contentHash: string; isReplaced?: boolean }[];
    };
    expect(dataset.stages.flatMap(({ calls }) => calls.flatMap(({ artifacts }) => artifacts))).toEqual(hashes);
    expect(dataset.provenance.cells.map(({ code, artifacts, replacedIn }) => [code, artifacts, replacedIn])).toEqual([
      [sparse(few), [hashes[0]], 3],
      [sparse("range(100)"), [hashes[1]], null],
    ]);
    expect(dataset.artifacts.map(({ contentHash, isReplaced }) => [contentHash, isReplaced])).toEqual([
      [hashes[1], undefined],
      [hashes[0], true],
    ]);
  });

  test("followed by a failed cell forces nothing, because an edit would change the failed cell", async () => {
    const { result, of } = await run([
      fetchPrices,
      { calls: [cell(sparse(few), ["image"]), cell("raise ValueError('no')")] },
      final("Figure 1."),
    ]);
    expect(of("step-start").map(({ forced }) => forced)).toEqual([undefined, undefined, undefined]);
    expect(result.trace[1]!.calls.map(({ status }) => status)).toEqual(["ok", "error"]);
    expect(result.gaps.map(({ code }) => code)).toEqual(["low_coverage"]);
  });

  test("forces its own edits, however often an earlier figure was edited", async () => {
    const { of } = await run([
      fetchPrices,
      { calls: [cell(sparse(few), ["image"])] },
      { calls: [edit("[:20]", "[:19]")] },
      { calls: [edit(few.replace("20", "19"), "range(100)")] },
      { calls: [cell(sparse(few).replaceAll("A", "B"), ["image"])] },
      { calls: [edit(few, "range(100)")] },
      final("Figure 1 and Figure 2."),
    ]);
    const made = "python_code_edit";
    expect(of("step-start").map(({ forced }) => forced)).toEqual([undefined, undefined, made, made, undefined, made, undefined]);
  });

  test("forces at most two edits, then becomes a gap", async () => {
    const { result, of } = await run([
      fetchPrices,
      { calls: [cell(sparse(few), ["image"])] },
      { calls: [edit("[:20]", "[:19]")] },
      { calls: [edit("[:19]", "[:18]")] },
      final("Figure 1."),
    ]);
    expect(of("step-start").map(({ forced }) => forced)).toEqual([undefined, undefined, "python_code_edit", "python_code_edit", undefined]);
    expect(result.gaps).toEqual([
      {
        code: "low_coverage",
        severity: "minor",
        detail: expect.stringMatching(/^A by day: The figure is sparse: "A" has 19 of 100 expected points/),
      },
    ]);
    expect(result.artifacts).toHaveLength(1);
    expect(result.confidence.level).toBe("medium");
  });
});
