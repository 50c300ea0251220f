import { beforeEach, describe, expect, test } from "vitest";
import { createMemoryStore } from "../src/artifacts/create-memory-store.ts";
import type { ArtifactStore } from "../src/artifacts/contract.ts";
import { renderChart, type ChartAnswer } from "../src/charts/render-chart.ts";
import { envelopeSchema } from "../src/errors/envelope.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import type { EvidenceStore } from "../src/evidence/contract.ts";

/** A chart straight from an alias: no sandbox is there to be started. */
describe("render_chart", () => {
  let evidence: EvidenceStore;
  let artifacts: ArtifactStore;
  const rows = [
    { day: "2026-01-01", price: 1, note: "a", nested: { a: 1 } },
    { day: "2026-01-02", price: null, note: "b", nested: { a: 2 } },
  ];
  const spec = { type: "line", xKey: "day", series: [{ key: "price" }], xAxis: { type: "time" } };
  beforeEach(() => {
    evidence = createEvidenceStore();
    artifacts = createMemoryStore();
    evidence.add({ tool: "get_rows", output: JSON.stringify(rows) });
    evidence.add({ tool: "get_nested", output: JSON.stringify({ meta: { pages: 1 }, data: { items: [{ prices: rows }] } }) });
    evidence.add({ tool: "get_words", output: "no rows at all" });
  });
  const draw = async (input: unknown): Promise<ChartAnswer> => await renderChart({ input, evidence, artifacts });
  const refusal = async (input: unknown): Promise<unknown> => {
    const answer = await draw(input);
    if (answer.ok) throw new Error("it was drawn");
    expect(envelopeSchema.safeParse(answer.envelope).error).toBeUndefined();
    return answer.envelope;
  };
  const reshape = "Reshape it with code_interpreter: build flat rows there and call render_chart(spec, data) in Python.";

  test("draws the rows of an alias, with only the columns that it names, kept under their hash", async () => {
    const answer = await draw({ alias: "get_rows_1", spec, title: "Price" });
    const data = [
      { day: "2026-01-01", price: 1 },
      { day: "2026-01-02", price: null },
    ];
    expect(answer).toMatchObject({ ok: true, artifact: { schemaVersion: 1, kind: "chart", title: "Price", spec, data } });
    const { contentHash } = (answer as Extract<ChartAnswer, { ok: true }>).artifact;
    expect(JSON.parse(Buffer.from((await artifacts.get(contentHash, "json"))!).toString())).toEqual({ spec, data });
  });

  test.each(["data.items[0].prices", "data.items.0.prices"])("finds nested rows by the path %s", async (path) => {
    expect(await draw({ alias: "get_nested_1", spec, path })).toMatchObject({ ok: true, artifact: { data: { length: 2 } } });
  });

  test("an unknown alias is an envelope with those that there are", async () => {
    expect(await refusal({ alias: "get_row_1", spec })).toEqual({
      error_kind: "mcp_input_validation",
      tool: "render_chart",
      summary: 'No tool output has the alias "get_row_1". Did you mean get_rows_1? There are: get_rows_1, get_nested_1, get_words_1.',
      details: [{ path: "alias", issue: "is not known", received_type: "string" }],
      hints: [],
      examples: [],
      error_code: "ALIAS_UNKNOWN",
      retryable: false,
      _envelope_version: 1,
    });
  });

  test("a shape that does not fit is an envelope that says to reshape it, with the columns that are there", async () => {
    expect(await refusal({ alias: "get_rows_1", spec: { ...spec, series: [{ key: "prize" }] } })).toMatchObject({
      error_code: "CHART_INVALID",
      summary:
        "get_rows_1 cannot be drawn as it is: the spec and its rows do not fit. The columns that are there: day, price, note, nested.",
      details: [{ path: "series[0].key", issue: expect.stringContaining("prize") }],
      hints: [reshape],
    });
    expect(await refusal({ alias: "get_rows_1", spec: { ...spec, series: [{ key: "nested" }] } })).toMatchObject({
      summary: expect.stringContaining("do not fit"),
      hints: [reshape],
    });
  });

  test("a path that leads nowhere says where it ended and what is there", async () => {
    expect(await refusal({ alias: "get_nested_1", spec, path: "data.rows" })).toMatchObject({
      summary:
        'get_nested_1 cannot be drawn as it is: there is nothing at the path "data.rows" below data. The columns that are there: items.',
      hints: [reshape],
    });
  });

  test("what has no rows is said to have none", async () => {
    expect(await refusal({ alias: "get_words_1", spec })).toMatchObject({
      summary: "get_words_1 cannot be drawn as it is: it is text, not JSON rows.",
      hints: [reshape],
    });
    expect(await refusal({ alias: "get_nested_1", spec, path: "meta" })).toMatchObject({
      summary: expect.stringContaining("its rows are not a list of flat records"),
    });
  });

  test("too many rows have to be aggregated first", async () => {
    const { alias } = evidence.add({
      tool: "get_many",
      output: JSON.stringify(Array.from({ length: 5001 }, (_, n) => ({ day: n, price: n }))),
    });
    expect(await refusal({ alias, spec })).toMatchObject({
      summary: `${alias} cannot be drawn as it is: it has 5001 rows, a chart has at most 5000: aggregate first. The columns that are there: day, price.`,
    });
  });

  test.each([
    [null, "", "null"],
    [{ alias: 7, spec: { type: "line", xKey: "day", series: [] } }, "alias", "number"],
    [{ alias: "get_rows_1", spec: { type: "pie", xKey: "day", series: [] } }, "spec.type", "string"],
    [{ alias: "get_rows_1", spec: { type: "line", xKey: "day", series: [{}] } }, "spec.series[0].key", "missing"],
  ])("the malformed call %j is an envelope with the place and an example", async (input, path, receivedType) => {
    expect(await refusal(input)).toMatchObject({
      error_code: "CHART_INVALID",
      summary: `Nothing was drawn: ${path || "the call"} is not as the schema says.`,
      details: expect.arrayContaining([expect.objectContaining({ path, received_type: receivedType })]),
      examples: [expect.objectContaining({ alias: expect.any(String), spec: expect.any(Object) })],
    });
  });

  test("a store that cannot keep it is an envelope too", async () => {
    const broken = { ...artifacts, put: () => Promise.reject(new Error("no space")) };
    const answer = await renderChart({ input: { alias: "get_rows_1", spec }, evidence, artifacts: broken });
    expect(answer).toMatchObject({ ok: false, envelope: { error_code: "INTERNAL_ERROR", summary: "no space" } });
  });
});
