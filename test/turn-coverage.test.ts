import { afterAll, describe, expect, test } from "vitest";
import { cacheDirectory } from "../src/config/environment.ts";
import { createRuntime } from "../src/create-runtime.ts";
import type { TurnResult } from "../src/protocol/turn-result.ts";
import type { LocalTool } from "../src/tools/create-local-source.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { call, final, scriptedModel, testTurn, type Script, type StepReply, type TestTurn } from "./turn-fixtures.ts";

/** What a turn does when something that was drawn or stated hides who was counted. Real cells; the model is scripted. */
const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
afterAll(() => runtime.close());

/** 90 days of a price; `known`: the days that have one. */
const getDays: LocalTool = {
  name: "get_days",
  description: "Daily prices.",
  inputSchema: { type: "object", properties: { known: { type: "array", items: { type: "number" } } } },
  annotations: { readOnlyHint: true },
  execute: ({ known }) =>
    Array.from({ length: 90 }, (_, day) => ({
      day: new Date(Date.UTC(2026, 0, 1 + day)).toISOString().slice(0, 10),
      price: !Array.isArray(known) || known.includes(day) ? 100 + day : null,
    })),
};

async function run(script: Script, question = "Plot the price by day."): Promise<TestTurn & { readonly result: TurnResult }> {
  const turn = testTurn({ model: scriptedModel({ plan: { chartIntent: "explicit" }, ...script }), question, tools: [getDays] });
  return { ...turn, result: await runTurn(runtime, turn.request) };
}

const forced = ({ of }: TestTurn): (string | undefined)[] => of("step-start").map((step) => step.forced);
const spec = { type: "line", xKey: "day", series: [{ key: "price", label: "Price" }] };
const draw = (alias: string, more: object = {}): StepReply => call("render_chart", { alias, spec, title: "Price by day", ...more });
const cell = (code: string, inputAliases: string[], expectedArtifacts: string[] = []): StepReply =>
  call("code_interpreter", {
    code,
    postProcessingContract: { operation: "derive_metric", reason: "Asked for.", inputAliases, expectedArtifacts },
  });
const sparse = call("get_days", { known: [10, 70] });
const detail = 'Price by day: The chart is sparse: "Price" has 2 of 90 expected points.';

describe("a sparse chart of render_chart", () => {
  test("forces one second render, then becomes a gap, and the confidence is not high", async () => {
    const turn = await run({ steps: [sparse, draw("get_days_1"), draw("get_days_1"), final("Chart 1 has the price.")] });
    expect(forced(turn)).toEqual([undefined, undefined, "render_chart", undefined]);
    expect(turn.result.gaps).toEqual([{ code: "low_coverage", severity: "minor", detail }]);
    expect(turn.result.outcome.stopReason).toBe("complete_answer");
    expect(turn.result.confidence).toEqual({ level: "medium", reason: detail });
    expect(turn.result.answer).toContain(detail);
    expect(turn.result.artifacts).toHaveLength(1);
  });

  test("is replaced by a second render of complete rows", async () => {
    const turn = await run({
      steps: [sparse, call("get_days"), draw("get_days_1"), draw("get_days_2"), final("Chart 1 has the price.")],
    });
    expect(forced(turn)).toEqual([undefined, undefined, undefined, "render_chart", undefined]);
    expect(turn.result.gaps).toEqual([]);
    const [first, second] = turn.of("artifact");
    expect(second!.replaces).toEqual([first!.artifact.contentHash]);
    expect(turn.result.artifacts.map(({ contentHash }) => contentHash)).toEqual([second!.artifact.contentHash]);
  });

  test("is accepted when it is sparse by design", async () => {
    const turn = await run({ steps: [sparse, draw("get_days_1", { cadence: { price: null } }), final("Chart 1 has the price.")] });
    expect(forced(turn)).toEqual([undefined, undefined, undefined]);
    expect(turn.result.gaps).toEqual([]);
  });

  test("of a cell's result forces an edit of the cell, which replaces it", async () => {
    const code = "df = to_frame(get_days_1)\nset_result(df)";
    const edit = call("python_code_edit", {
      edits: [{ oldText: "set_result(df)", newText: "set_result(df.assign(price=df.price.interpolate()).dropna())" }],
    });
    const turn = await run({ steps: [sparse, cell(code, ["get_days_1"]), draw("result_1"), edit, draw("result_2"), final("Chart 1.")] });
    expect(forced(turn)).toEqual([undefined, undefined, undefined, "python_code_edit", undefined, undefined]);
    expect(turn.result.gaps).toEqual([]);
    expect(turn.result.artifacts.map(({ contentHash }) => contentHash)).toEqual([turn.of("artifact")[1]!.artifact.contentHash]);
    expect(turn.result.artifacts[0]).toMatchObject({ data: expect.objectContaining({ length: 80 }) });
  });

  test("two of them force one step, in which the model can draw both again", async () => {
    const both = (alias: string): StepReply => ({
      calls: [
        { tool: "render_chart", input: { alias, spec, title: "A" } },
        { tool: "render_chart", input: { alias, spec: { ...spec, type: "bar" }, title: "B" } },
      ],
    });
    const turn = await run({ steps: [sparse, call("get_days"), both("get_days_1"), both("get_days_2"), final("Chart 1 and Chart 2.")] });
    expect(forced(turn)).toEqual([undefined, undefined, undefined, "render_chart", undefined]);
    const hashes = turn.of("artifact").map(({ artifact }) => artifact.contentHash);
    expect(turn.of("artifact").map(({ replaces }) => replaces)).toEqual([[], [], [hashes[0]], [hashes[1]]]);
    expect(turn.result.artifacts.map(({ title }) => title)).toEqual(["A", "B"]);
    expect(turn.result.gaps).toEqual([]);
  });
});

/** Reserves of two venues; Harbour is first listed on the third day with 35,000. */
const getReserves: LocalTool = {
  name: "get_reserves",
  description: "Daily reserves by venue.",
  inputSchema: { type: "object", properties: {} },
  annotations: { readOnlyHint: true },
  execute: () =>
    [100, 101, 97, 98, 99, 98].flatMap((meridian, day) => {
      const date = new Date(Date.UTC(2025, 2, 1 + day)).toISOString().slice(0, 10);
      const harbour = { day: date, venue: "Harbour", btc: 35_000 + day - 2 };
      return [{ day: date, venue: "Meridian", btc: meridian }, ...(day < 2 ? [] : [harbour])];
    }),
};
const derive = 'changes = derive_change_series(get_reserves_1, freq="1D")\n';
const event = "Coverage changed: Harbour was first listed on 2025-03-03 with 35,000.";

describe("coverage events", () => {
  const question = "What was the net inflow?";
  const ask = async (script: Script): Promise<{ readonly result: TurnResult; readonly prompts: string[] }> => {
    const model = scriptedModel(script);
    const result = await runTurn(runtime, testTurn({ model, question, tools: [getReserves] }).request);
    return { result, prompts: model.stepCalls.map(({ prompt }) => JSON.stringify(prompt)) };
  };

  test("are stated by the runtime although neither the cell nor the model mentions them", async () => {
    const code = `${derive}changes = changes.rename(columns=str.upper)[2:]\nset_result({"flow": changes["STABLE_ENTITIES_CHANGE"].sum()})`;
    const { result, prompts } = await ask({
      steps: [call("get_reserves"), cell(code, ["get_reserves_1"]), final("There was no inflow.")],
    });
    expect(prompts[2]).toContain("Who was counted changed: Harbour was first listed on 2025-03-03 with 35,000.");
    expect(result.gaps).toEqual([{ code: "coverage_events", severity: "minor", detail: event }]);
    expect(result.answer).toBe(`There was no inflow.\n\n${event}`);
    expect(result.confidence).toEqual({ level: "medium", reason: event });
  });

  test("do not lower the confidence in an answer that names their entities", async () => {
    const answer = "There was no inflow. Harbour was listed with 35,000, which is not a flow.";
    const { result } = await ask({ steps: [call("get_reserves"), cell(derive, ["get_reserves_1"]), final(answer)] });
    expect(result.gaps).toEqual([{ code: "coverage_events", severity: "info", detail: event }]);
    expect([result.confidence.level, result.answer]).toEqual(["high", `${answer}\n\n${event}`]);
  });

  test("in a number of the answer are flagged, and the corrected number removes the flag", async () => {
    const steps = (answer: string): StepReply[] => [
      call("get_reserves"),
      cell(`${derive}set_result(1)`, ["get_reserves_1"]),
      final(answer),
    ];
    const { result } = await ask({ steps: steps("Inflow was 35,001. Harbour was listed.") });
    const flag =
      "Coverage counted as a change: 35,001 includes 35,000 that came or went with who was counted; without it, the change is 1.";
    expect(result.gaps.find(({ code }) => code === "uncorrected_change")).toEqual({
      code: "uncorrected_change",
      severity: "minor",
      detail: flag,
    });
    expect(result.answer).toBe(`Inflow was 35,001. Harbour was listed.\n\n${event}\n${flag}`);
    expect(result.confidence).toEqual({ level: "medium", reason: flag });
    const honest = await ask({ steps: steps("The total rose by 35,001 because Harbour was listed; the inflow was 1.") });
    expect(honest.result.confidence.level).toBe("high");
  });

  test("of several cells and of an edited cell are stated once, together with those of results", async () => {
    const again = `${derive}weekly = derive_change_series(get_reserves_1, freq="1D")\nset_result({"coverage_events": changes.attrs["coverage_events"]})`;
    const edit = call("python_code_edit", { edits: [{ oldText: "weekly", newText: "same" }] });
    const { result } = await ask({
      steps: [call("get_reserves"), cell(derive, ["get_reserves_1"]), cell(again, ["get_reserves_1"]), edit, final("No inflow.")],
    });
    expect(result.answer).toBe(`No inflow.\n\n${event}`);
  });

  test("of a cell that was edited away are not stated", async () => {
    const edit = call("python_code_edit", {
      edits: [{ oldText: 'get_reserves_1, freq="1D"', newText: "[{'day': '2025-03-01', 'a': 1}]" }],
    });
    const { result } = await ask({ steps: [call("get_reserves"), cell(derive, ["get_reserves_1"]), edit, final("No inflow.")] });
    expect(result.gaps).toEqual([]);
  });
});

describe("a drawing that hides coverage", () => {
  const ask = async (...steps: StepReply[]): Promise<TestTurn & { readonly result: TurnResult }> => {
    const turn = testTurn({
      model: scriptedModel({ plan: { chartIntent: "explicit" }, steps: [call("get_reserves"), ...steps] }),
      question: "Plot the net inflow by day.",
      tools: [getReserves],
    });
    return { ...turn, result: await runTurn(runtime, turn.request) };
  };
  const inflow = 'plt.bar(changes.index, changes.total_change / 1e3, label="Inflow")\n';
  const save = 'plt.legend()\nsave_figure("Bars of the net inflow by day", title="Net inflow")';
  const said = final("Harbour was listed. Figure 1, Chart 1.");
  const hidden = (drawn: string, label: string): string =>
    `Net inflow: The ${drawn} draws changes of coverage as part of "${label}" without naming them: Harbour was first listed on 2025-03-03 with 35,000.`;

  test("of a later cell forces an edit, which can name the entity", async () => {
    const edit = call("python_code_edit", {
      edits: [{ oldText: "plt.legend()", newText: 'plt.annotate("Harbour is new", (0.5, 0.5), xycoords="axes fraction")' }],
    });
    const turn = await ask(cell(derive, ["get_reserves_1"]), cell(`${inflow}${save}`, ["get_reserves_1"], ["image"]), edit, said);
    expect(forced(turn)).toEqual([undefined, undefined, undefined, "python_code_edit", undefined]);
    expect(turn.result.gaps.map(({ code }) => code)).toEqual(["coverage_events"]);
    expect(turn.result.artifacts).toHaveLength(1);
  });

  test("becomes a gap if it stays as it was", async () => {
    const edit = call("python_code_edit", { edits: [{ oldText: "1e3", newText: "1e6" }] });
    const back = call("python_code_edit", { edits: [{ oldText: "1e6", newText: "1e3" }] });
    const turn = await ask(cell(`${derive}${inflow}${save}`, ["get_reserves_1"], ["image"]), edit, back, said);
    expect(forced(turn)).toEqual([undefined, undefined, "python_code_edit", "python_code_edit", undefined]);
    expect(turn.result.gaps[0]).toEqual({ code: "unnamed_coverage", severity: "minor", detail: hidden("figure", "Inflow") });
    expect(turn.result.confidence.level).toBe("medium");
  });

  test("of render_chart forces an edit of the cell whose result it shows, and is replaced", async () => {
    const spec = { type: "line", xKey: "when", series: [{ key: "total" }] };
    const rows = 'set_result(changes.reset_index(names="when").rename(columns={"total_change": "total"})[["when", "total"]][1:])';
    const chart = (alias: string): StepReply => call("render_chart", { alias, spec, title: "Net inflow" });
    const edit = call("python_code_edit", { edits: [{ oldText: "total_change", newText: "stable_entities_change" }] });
    const turn = await ask(cell(`${derive}${rows}`, ["get_reserves_1"]), chart("result_1"), edit, chart("result_2"), said);
    expect(forced(turn)).toEqual([undefined, undefined, undefined, "python_code_edit", undefined, undefined]);
    expect(turn.result.gaps.map(({ code }) => code)).toEqual(["coverage_events"]);
    const unrepaired = await ask(
      cell(`${derive}${rows}`, ["get_reserves_1"]),
      cell("1", ["get_reserves_1"]),
      chart("result_1"),
      chart("result_1"),
      said,
    );
    expect(forced(unrepaired)).toEqual([undefined, undefined, undefined, undefined, "render_chart", undefined]);
    expect(unrepaired.result.gaps[0]!.detail).toBe(hidden("chart", "total"));
  });

  test("of render_chart in a cell forces an edit, and a label that names coverage is enough", async () => {
    const chart =
      'render_chart({"type": "bar", "xKey": "period", "series": [{"key": "coverage_change", "label": "Change"}]}, changes.reset_index()[1:], title="Net inflow")';
    const edit = call("python_code_edit", { edits: [{ oldText: '"Change"', newText: '"Coverage"' }] });
    const turn = await ask(cell(`${derive}${chart}`, ["get_reserves_1"], ["chart"]), edit, said);
    expect(forced(turn)).toEqual([undefined, undefined, "python_code_edit", undefined]);
    expect(turn.result.gaps.map(({ code }) => code)).toEqual(["coverage_events"]);
  });
});
