import { beforeEach, describe, expect, test } from "vitest";
import { createMemoryStore, type ArtifactStore } from "../src/artifacts/artifact-store.ts";
import { renderChart, type ChartAnswer } from "../src/interpreter/render-chart.ts";
import { toolErrorSchema, type ToolError } from "../src/errors/tool-error.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import type { EvidenceStore } from "../src/evidence/evidence-store.ts";
import { countLoopIterations } from "./fixtures/event-loop.ts";

/** Charts directly from an alias. These tests have no sandbox. */
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
    expect(toolErrorSchema.safeParse(answer.toolError).error).toBeUndefined();
    return answer.toolError;
  };
  /** The complete tool error. */
  const invalid = (facts: Partial<ToolError> & Pick<ToolError, "summary">): ToolError => ({
    error_kind: "mcp_input_validation",
    tool: "render_chart",
    details: [],
    hints: [reshape],
    examples: [],
    error_code: "CHART_INVALID",
    retryable: false,
    _envelope_version: 1,
    ...facts,
  });
  const reshape = "Reshape it with code_interpreter: build flat rows there and call render_chart(spec, data) in Python.";

  test("draws the rows of an alias, stores only the columns that the spec names, and addresses the chart by its hash", async () => {
    const answer = await draw({ alias: "get_rows_1", spec, title: "Price" });
    const data = [
      { day: "2026-01-01", price: 1 },
      { day: "2026-01-02", price: null },
    ];
    const { contentHash } = (answer as Extract<ChartAnswer, { ok: true }>).artifact;
    const url = `sluice://artifacts/${contentHash}`;
    const artifact = { schemaVersion: 1, kind: "chart", url, title: "Price", spec, data, contentHash, bytes: 162 };
    expect(answer).toEqual({ ok: true, artifact, findings: [], notes: [] });
    expect(JSON.parse(Buffer.from((await artifacts.get(contentHash, "json"))!).toString())).toEqual({ spec, data });
  });

  test("judges the series by the same law of coverage as cells, and takes a cadence", async () => {
    const sparse = Array.from({ length: 90 }, (_, day) => ({
      day: new Date(Date.UTC(2026, 0, 1 + day)).toISOString(),
      price: day === 10 || day === 70 ? day : null,
    }));
    evidence.add({ tool: "get_sparse", output: JSON.stringify(sparse) });
    const input = { alias: "get_sparse_1", spec: { ...spec, series: [{ key: "price", label: "BTC" }] } };
    const answer = (await draw(input)) as Extract<ChartAnswer, { ok: true }>;
    expect(answer.findings).toEqual([{ code: "low_coverage", detail: 'The chart is sparse: "BTC" has 2 of 90 expected points.' }]);
    expect(answer.notes).toEqual([
      "Plotted series are sparse: BTC has 2 of 90 points of its own index, largest gap 60D. Align the series first, fill from the source, or, if a series is sparse by design, pass its cadence to save_figure or render_chart.",
    ]);
    for (const cadence of [{ BTC: null }, { price: "60D" }, { BTC: "2M" }]) {
      expect(await draw({ ...input, cadence }), JSON.stringify(cadence)).toMatchObject({ ok: true, findings: [], notes: [] });
    }
    expect(await draw({ ...input, cadence: { BTC: "1W" } })).toMatchObject({
      findings: [{ detail: 'The chart is sparse: "BTC" has 2 of 9 expected points.' }],
    });
    expect(await refusal({ ...input, cadence: { ETH: "1D" } })).toMatchObject({
      summary: 'get_sparse_1 was not drawn: cadence names "ETH", but the series are "BTC".',
      details: [{ path: "cadence.ETH", issue: "is not a series" }],
    });
    expect(await refusal({ ...input, cadence: { BTC: "often" } })).toMatchObject({ details: [{ path: "cadence.BTC" }] });
  });

  test.each(["data.items[0].prices", "data.items.0.prices", "$.data.items[0].prices", `["data"]['items'][0]["prices"]`])(
    "finds nested rows by the path %s",
    async (path) => {
      const flat = (await draw({ alias: "get_rows_1", spec })) as Extract<ChartAnswer, { ok: true }>;
      expect(await draw({ alias: "get_nested_1", spec, path })).toEqual(flat);
    },
  );

  test("finds rows behind keys with dots, brackets and quotes", async () => {
    const flat = (await draw({ alias: "get_rows_1", spec })) as Extract<ChartAnswer, { ok: true }>;
    const { alias } = evidence.add({ tool: "get_odd", output: JSON.stringify({ "a.b[0]": { 'say "it"': { "it's": rows } } }) });
    expect(await draw({ alias, spec, path: String.raw`["a.b[0]"]["say \"it\""]['it\'s']` })).toEqual(flat);
  });

  test("finds rows inside a large alias without blocking the event loop", async () => {
    const ballast = Array.from({ length: 40_000 }, (_, id) => ({ id, words: "some words of a row" }));
    await evidence.keep({ tool: "get_much", output: JSON.stringify({ ballast, data: { items: [{ prices: rows }] } }) });
    const flat = (await draw({ alias: "get_rows_1", spec })) as Extract<ChartAnswer, { ok: true }>;
    const { value, iterations } = await countLoopIterations(() => draw({ alias: "get_much_1", spec, path: "data.items[0].prices" }));
    expect(value).toEqual(flat);
    expect(iterations).toBeGreaterThan(2);
    expect(await refusal({ alias: "get_much_1", spec, path: "ballast" })).toEqual(
      invalid({
        summary:
          "get_much_1 cannot be drawn directly: it has 40000 rows, a chart has at most 5000: aggregate first. Available columns: id, words.",
      }),
    );
  });

  test("an unknown alias is refused with the known ones", async () => {
    expect(await refusal({ alias: "get_row_1", spec })).toEqual({
      error_kind: "mcp_input_validation",
      tool: "render_chart",
      summary: 'No tool output has the alias "get_row_1". Did you mean get_rows_1? Known aliases: get_rows_1, get_nested_1, get_words_1.',
      details: [{ path: "alias", issue: "is not known", received_type: "string" }],
      hints: [],
      examples: [],
      error_code: "ALIAS_UNKNOWN",
      retryable: false,
      _envelope_version: 1,
    });
  });

  test("rows that do not match the spec are refused with the available columns and a hint to reshape them", async () => {
    const summary = "get_rows_1 cannot be drawn directly: the spec does not match the rows. Available columns: day, price, note, nested.";
    expect(await refusal({ alias: "get_rows_1", spec: { ...spec, series: [{ key: "prize" }] } })).toEqual(
      invalid({
        summary,
        details: [
          {
            path: "spec.series[0].key",
            issue: "prize is not in the data; the columns are day, price, note, nested",
            received_type: "string",
          },
        ],
      }),
    );
    expect(await refusal({ alias: "get_rows_1", spec: { ...spec, series: [{ key: "nested" }] } })).toEqual(
      invalid({
        summary:
          "get_rows_1 cannot be drawn directly: the spec names columns that hold more than one value per row. Available columns: day, price, note, nested.",
        details: [
          {
            path: "data[0].nested",
            issue: "nested contains lists or objects; a chart can show text, numbers, true, false and null",
            received_type: "object",
          },
        ],
      }),
    );
  });

  test("a path that leads nowhere is refused with where it ended and what is there", async () => {
    expect(await refusal({ alias: "get_nested_1", spec, path: "data.rows" })).toEqual(
      invalid({
        summary: 'get_nested_1 cannot be drawn directly: there is nothing at the path "data.rows" below data. Available columns: items.',
      }),
    );
  });

  test("an alias without rows is refused", async () => {
    expect(await refusal({ alias: "get_words_1", spec })).toEqual(
      invalid({ summary: "get_words_1 cannot be drawn directly: it is text, not JSON rows." }),
    );
    expect(await refusal({ alias: "get_nested_1", spec, path: "meta" })).toEqual(
      invalid({
        summary: "get_nested_1 cannot be drawn directly: its rows are not a list of flat records. Available columns: meta, data.",
      }),
    );
  });

  test("a table that is not JSON is refused, and columns past the limit are counted", async () => {
    evidence.addData({ name: "sales", format: "csv", bytes: Buffer.from("day,price\n1,2\n") });
    expect(await refusal({ alias: "sales", spec })).toEqual(
      invalid({ summary: "sales cannot be drawn directly: it is csv, not JSON rows." }),
    );
    const wide = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`c${n}`, n]));
    const { alias } = evidence.add({ tool: "get_wide", output: JSON.stringify([wide]) });
    const listed = Object.keys(wide).slice(0, 40).join(", ");
    expect(await refusal({ alias, spec: { type: "line", xKey: "c0", series: [] } })).toEqual(
      invalid({
        summary: `${alias} cannot be drawn directly: the spec does not match the rows. Available columns: ${listed} and 10 more.`,
        details: [{ path: "spec.series", issue: "at least one series is needed", received_type: "array" }],
      }),
    );
  });

  test("aliases past the limit are counted", async () => {
    for (let call = 0; call < 25; call += 1) evidence.add({ tool: "any", output: "1" });
    const listed = evidence.aliases().slice(-20).join(", ");
    expect(await refusal({ alias: "nothing", spec })).toEqual(
      invalid({
        error_code: "ALIAS_UNKNOWN",
        summary: `No tool output has the alias "nothing". Known aliases: ${listed} and 8 older ones.`,
        details: [{ path: "alias", issue: "is not known", received_type: "string" }],
        hints: [],
      }),
    );
  });

  test("too many rows are refused with a hint to aggregate", async () => {
    const { alias } = evidence.add({
      tool: "get_many",
      output: JSON.stringify(Array.from({ length: 5001 }, (_, n) => ({ day: n, price: n }))),
    });
    expect(await refusal({ alias, spec })).toEqual(
      invalid({
        summary: `${alias} cannot be drawn directly: it has 5001 rows, a chart has at most 5000: aggregate first. Available columns: day, price.`,
      }),
    );
  });

  test.each([
    [null, "", "null", "The call must be an object, not null."],
    [{ alias: 7, spec: { type: "line", xKey: "day", series: [] } }, "alias", "number", "alias must be a string, not 7."],
    [
      { alias: "get_rows_1", spec: { type: "lines", xKey: "day", series: [] } },
      "spec.type",
      "string",
      'spec.type must be one of "line", "bar", "area", "scatter", "composed", "histogram", "heatmap", "candlestick", not "lines". Did you mean "line"?',
    ],
    [
      { alias: "get_rows_1", spec: { type: "line", xKey: "day", series: [{}] } },
      "spec.series[0].key",
      "missing",
      "spec.series[0].key is missing.",
    ],
    [
      { alias: "get_rows_1", spec: { type: "line", xKey: "day", series: [{ key: "price" }] }, titel: "x" },
      "titel",
      "string",
      'titel is not a known field. Did you mean "title"?',
    ],
  ])("the malformed call %j is refused with the place and an example", async (input, path, receivedType, issue) => {
    const hint = /Did you mean .*$/.exec(issue)?.[0];
    expect(await refusal(input)).toEqual(
      invalid({
        summary: `Nothing was drawn. ${issue}`,
        details: [{ path, issue, received_type: receivedType, error_code: expect.stringMatching(/^SCHEMA_/) as string }],
        hints: hint === undefined ? [] : [`${path}: ${hint}`],
        examples: [chartExample],
      }),
    );
  });

  test("all faults of a call are reported, each with its place", async () => {
    expect(await refusal({ spec: { type: "line", xKey: 1, series: [{ key: "price" }] }, path: [] })).toEqual(
      invalid({
        summary: "Nothing was drawn. alias is missing. And 2 more problems.",
        details: [
          { path: "alias", issue: "alias is missing.", received_type: "missing", error_code: "SCHEMA_REQUIRED" },
          { path: "spec.xKey", issue: "spec.xKey must be a string, not 1.", received_type: "number", error_code: "SCHEMA_TYPE_MISMATCH" },
          { path: "path", issue: "path must be a string, not an array.", received_type: "array", error_code: "SCHEMA_TYPE_MISMATCH" },
        ],
        hints: [],
        examples: [chartExample],
      }),
    );
  });

  test("a store that fails is reported as a tool error", async () => {
    const broken = { ...artifacts, put: () => Promise.reject(new Error("no space")) };
    const answer = await renderChart({ input: { alias: "get_rows_1", spec }, evidence, artifacts: broken });
    const kind = { error_kind: "internal_error", error_code: "INTERNAL_ERROR" } as const;
    expect(answer).toEqual({ ok: false, toolError: invalid({ ...kind, summary: "no space", hints: [] }) });
  });
});

const chartExample = {
  alias: "get_price_1",
  spec: { type: "line", xKey: "date", series: [{ key: "price" }], xAxis: { type: "time" } },
  title: "Price by day",
};
