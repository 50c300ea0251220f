import { appendFileSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createMemoryStore } from "../src/artifacts/artifact-store.ts";
import { renderChart } from "../src/interpreter/render-chart.ts";
import { runCodeInterpreter } from "../src/interpreter/code-interpreter.ts";
import type { ToolResult } from "../src/interpreter/tool-result.ts";
import { disposeTurnSandbox, type InterpreterTurn } from "../src/interpreter/interpreter-turn.ts";
import type { EvidenceStore } from "../src/evidence/evidence-store.ts";
import { toolErrorOf, makeFile, openDataBench, contentOf, type DataBench } from "./data-fixtures.ts";

const frame = `df = pd.DataFrame({"day": ["mon", "tue", None], "sold": [5, 7, 9], "price": [1.5, None, 2.25]})`;

/** The tests open many sandboxes, which is slow on a busy machine. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

describe("data files", () => {
  let bench: DataBench;
  let turns: InterpreterTurn[] = [];
  const artifacts = createMemoryStore();

  beforeAll(() => {
    bench = openDataBench();
  });
  afterEach(async () => {
    await Promise.all(turns.map(disposeTurnSandbox));
    turns = [];
    rmSync(bench.folder, { recursive: true, force: true });
    mkdirSync(bench.folder);
  });
  afterAll(() => bench[Symbol.asyncDispose]());

  const write = (name: string, content: string | Uint8Array): string => {
    const file = path.join(bench.folder, name);
    writeFileSync(file, content);
    return file;
  };
  const openTurn = (evidence: EvidenceStore): InterpreterTurn => {
    const turn = bench.runtime.createTurn({ id: `turn-${turns.length}`, evidence, artifacts });
    turns.push(turn);
    return turn;
  };
  const run = (turn: InterpreterTurn, code: string, inputAliases: string[]): Promise<ToolResult> =>
    runCodeInterpreter(turn, {
      code,
      postProcessingContract: { operation: "derive_metric", reason: "It was asked for.", inputAliases, expectedArtifacts: [] },
    });

  test("give the same table in Python, read_data and list_data, in every format", async () => {
    write("one.csv", "day,sold,price\nmon,5,1.5\ntue,7,\n,9,2.25\n");
    write("two.tsv", "day\tsold\tprice\nmon\t5\t1.5\ntue\t7\t\n\t9\t2.25\n");
    write("three.json", '[{"day":"mon","sold":5,"price":1.5},{"day":"tue","sold":7,"price":null},{"day":null,"sold":9,"price":2.25}]');
    write("four.jsonl", '{"day":"mon","sold":5,"price":1.5}\n{"day":"tue","sold":7}\n\n{"sold":9,"price":2.25}\n');
    write("five.parquet", await makeFile(bench.runtime, `${frame}\ndf.to_parquet("made")`));
    write(
      "six.xlsx",
      await makeFile(bench.runtime, `${frame}\ndf.to_excel("made.xlsx", index=False)\nimport os\nos.rename("made.xlsx", "made")`),
    );
    const data = await bench.open();
    expect(data.evidence.aliases()).toEqual(["five", "four", "one", "six", "three", "two"]);
    const listed = contentOf(await data.listData()) as { data: { alias: string; rows: number; columns: unknown; source: string }[] };
    const columns = [
      { name: "day", type: "text" },
      { name: "sold", type: "integer" },
      { name: "price", type: "number" },
    ];
    expect(listed.data.map(({ alias, rows, columns: seen, source }) => ({ alias, rows, seen, source }))).toEqual(
      data.evidence.aliases().map((alias) => ({ alias, rows: 3, seen: columns, source: "file" })),
    );
    for (const alias of data.evidence.aliases()) {
      expect(contentOf(await data.readData({ alias }))).toEqual({
        alias,
        _contextAlias: alias,
        columns: ["day", "sold", "price"],
        rows: [
          { day: "mon", sold: 5, price: 1.5 },
          { day: "tue", sold: 7, price: null },
          { day: null, sold: 9, price: 2.25 },
        ],
        offset: 0,
        returned: 3,
        total: 3,
        matched: 3,
        nextOffset: null,
        cutCells: 0,
        notes: [],
      });
    }
    const turn = openTurn(data.evidence);
    const code = `set_result({name: int(to_frame(inputs[name])["sold"].sum()) for name in ["one", "two", "three", "four", "five", "six"]})`;
    const { outcome, error } = await run(turn, code, data.evidence.aliases());
    expect([outcome?.resultJson, error]).toEqual(['{"one":21,"two":21,"three":21,"four":21,"five":21,"six":21}', null]);
    expect(JSON.parse(data.evidence.preview("one").json)).toMatchObject({
      alias: "one",
      rows: 3,
      columns: 3,
      schema: expect.any(Array) as unknown,
    });
  });

  test("in Excel format give the first sheet, and a note names the others", async () => {
    const code = `import os
with pd.ExcelWriter("m.xlsx") as book:
    pd.DataFrame({"a": [1]}).to_excel(book, sheet_name="First", index=False)
    pd.DataFrame({"b": [2]}).to_excel(book, sheet_name="Second one", index=False)
os.rename("m.xlsx", "made")`;
    write("book.xlsx", await makeFile(bench.runtime, code));
    const data = await bench.open();
    expect(contentOf(await data.listData())).toMatchObject({
      data: [
        {
          alias: "book",
          rows: 1,
          columns: [{ name: "a" }],
          notes: ["only the first of 2 sheets, 'First', is read; not read: 'Second one'"],
        },
      ],
    });
  });

  test("in text format give one row per line", async () => {
    write("words.txt", "first line\nsecond Line\n");
    const data = await bench.open();
    expect(contentOf(await data.readData({ alias: "words", search: "LINE", offset: 1 }))).toMatchObject({
      columns: ["line", "text"],
      rows: [{ line: 2, text: "second Line" }],
      total: 2,
      matched: 2,
    });
  });

  test("that change on disk are read again by the next cell and the next page, which say so", async () => {
    const file = write("sales.csv", "sold\n1\n2\n");
    const data = await bench.open();
    const turn = openTurn(data.evidence);
    const first = await run(turn, "kept = sales\nset_result(int(sales['sold'].sum()))", ["sales"]);
    expect([first.outcome?.resultJson, first.outcome?.diagnostics["inputsChanged"]]).toEqual(["3", undefined]);
    expect(contentOf(await data.readData({ alias: "sales" }))).toMatchObject({ total: 2, notes: [] });
    writeFileSync(file, "sold\n10\n20\n30\n");
    const second = await run(turn, "set_result([int(sales['sold'].sum()), int(kept['sold'].sum())])", ["sales"]);
    expect(second.error).toBeNull();
    expect([second.outcome?.resultJson, second.outcome?.diagnostics["inputsChanged"]]).toEqual(["[60,3]", [{ alias: "sales", bytes: 14 }]]);
    expect(JSON.parse(second.text)).toMatchObject({
      notes: [
        "Changed on disk since an earlier cell used them: sales (now 14 bytes). This cell had the new content; variables of earlier cells still hold values from the old content.",
      ],
    });
    const third = await run(turn, "set_result(len(sales))", ["sales"]);
    expect([third.outcome?.resultJson, third.outcome?.diagnostics["inputsChanged"]]).toEqual(["3", undefined]);
    expect(contentOf(await data.readData({ alias: "sales" }))).toMatchObject({
      total: 3,
      notes: ["The file of sales changed on disk since you last read it. Earlier pages and results show its old content."],
    });
    expect(contentOf(await data.readData({ alias: "sales" }))).toMatchObject({ total: 3, notes: [] });
    writeFileSync(file, "sold\n1\n");
    const listed = async (): Promise<unknown> => (contentOf(await data.listData()) as { data: unknown[] }).data[0];
    const entry = {
      alias: "sales",
      _contextAlias: "sales",
      source: "file",
      name: "sales",
      format: "csv",
      bytes: 7,
      rows: 1,
      columns: [{ name: "sold", type: "integer" }],
    };
    expect(await listed()).toEqual({ ...entry, changed: true });
    expect(await listed()).toEqual(entry);
  });

  test("that appear in the folder become aliases at the next list_data", async () => {
    write("sales.csv", "sold\n1\n");
    const data = await bench.open();
    write("class.csv", "a\n1\n");
    write("sales.tsv", "a\n1\n");
    write("2024 report (final).csv", "a\n1\n");
    write("price\u202Egnp.\nx.csv", "a\n1\n");
    write('"; drop.csv', "a\n1\n");
    const answer = contentOf(await data.listData()) as { data: { alias: string; name: string; rows: number }[] };
    expect(answer.data.map(({ alias, name, rows }) => [alias, name, rows])).toEqual([
      ["sales", "sales", 1],
      ["drop", '"; drop', 1],
      ["data_2024_report_final", "2024 report (final)", 1],
      ["class_data", "class", 1],
      ["price_gnp_x", "price gnp. x", 1],
      ["sales_2", "sales", 1],
    ]);
  });

  test("that are damaged are listed with their problem, and do not affect the others", async () => {
    write("damaged.csv", "a,b\n1,2\n3,4,5,6\n");
    write("empty.csv", "");
    write("latin.csv", Buffer.from("name\ncaf\u00e9\n", "latin1"));
    write("open.csv", 'a,b\n1,"never closed\n2,3\n');
    write("broken.json", '{"a": [1, 2');
    write("fake.parquet", "PAR1 but not really");
    write("good.csv", "a\n1\n");
    const data = await bench.open();
    const { data: listed } = contentOf(await data.listData()) as { data: { alias: string; rows: number | null; problem?: string }[] };
    const problems = Object.fromEntries(listed.map(({ alias, rows, problem }) => [alias, problem ?? rows]));
    expect(problems).toEqual({
      broken: "Cannot read broken: input 'broken' is not readable as json: Expecting ',' delimiter: line 1 column 12 (char 11).",
      damaged:
        "Cannot read damaged: input 'damaged' is not readable as csv: Line 3 has 4 cells, but the header has 2. Quote cells that contain the delimiter, or remove what stands above the header.",
      empty: "Cannot read empty: input 'empty' is not readable as csv: It is empty: there is no header line.",
      fake: expect.stringContaining("Cannot read fake: input 'fake' is not readable as parquet: ") as string,
      good: 1,
      latin: 1,
      open_data:
        "Cannot read open_data: input 'open_data' is not readable as csv: The quotes of its first lines are malformed: a quoted cell is not closed, or text follows its closing quote.",
    });
    const toolError = toolErrorOf(await data.readData({ alias: "damaged" }));
    expect(toolError).toEqual({
      error_kind: "precondition_failed",
      tool: "read_data",
      summary: problems["damaged"],
      details: [],
      hints: ["Fix the file, or store its readable part under another name with store_data."],
      examples: [],
      error_code: "DATA_UNREADABLE",
      retryable: false,
      _envelope_version: 1,
    });
    const { error: inCell } = await run(openTurn(data.evidence), "set_result(len(damaged))", ["damaged"]);
    expect(inCell?.summary).toContain("Line 3 has 4 cells, but the header has 2");
  });

  test("that were replaced by a link are refused by every tool", async () => {
    const file = write("sales.csv", "sold\n1\n");
    const data = await bench.open();
    rmSync(file);
    symlinkSync("/etc/passwd", file);
    const why = `Refusing to read the file ${file}: it was replaced by a symbolic link.`;
    expect(contentOf(await data.readData({ alias: "sales" }))).toEqual(["DATA_FILE_REFUSED", why]);
    const { error: toolError } = await run(openTurn(data.evidence), "set_result(len(sales))", ["sales"]);
    expect([toolError?.error_code, toolError?.summary]).toEqual(["DATA_FILE_REFUSED", why]);
    expect(contentOf(await data.listData())).toMatchObject({ data: [{ alias: "sales", rows: null, columns: null, problem: why }] });
  });

  test("of any format can be drawn by render_chart if they are small enough", async () => {
    write("sales.csv", "day,sold\n2024-01-01,5\n2024-01-02,7\n");
    write("many.csv", `x,y\n${"1,2\n".repeat(6000)}`);
    const data = await bench.open();
    const spec = { type: "line", xKey: "day", series: [{ key: "sold" }], xAxis: { type: "time" } };
    const drawn = await renderChart({ input: { alias: "sales", spec }, evidence: data.evidence, artifacts, readRows: data.chartRows });
    expect(drawn).toMatchObject({
      ok: true,
      artifact: {
        kind: "chart",
        data: [
          { day: "2024-01-01", sold: 5 },
          { day: "2024-01-02", sold: 7 },
        ],
      },
    });
    const spec2 = { type: "scatter", xKey: "x", series: [{ key: "y" }] };
    const many = await renderChart({ input: { alias: "many", spec: spec2 }, evidence: data.evidence, artifacts, readRows: data.chartRows });
    expect(many.ok ? null : many.toolError.summary).toBe(
      "many cannot be drawn directly: it has 6000 rows, a chart has at most 5000: aggregate first. Available columns: x, y.",
    );
  });

  test("are sent to the sandbox only if the call names them", async () => {
    write("a.csv", "x\n1\n");
    write("sales.csv", "sold\n1\n");
    const data = await bench.open();
    const { outcome } = await run(openTurn(data.evidence), "table = list(inputs)\nset_result(table)", ["sales"]);
    expect(outcome?.resultJson).toBe('["sales"]');
  });

  test("of 200 MB work with the default limits, and larger ones are refused unread", async () => {
    const line = Buffer.from("2024-01-01,north,product 17,12.5,a note of some length\n".repeat(20_000));
    const file = path.join(bench.folder, "huge.csv");
    writeFileSync(file, "day,region,product,amount,note\n");
    const rows = Math.ceil(200_000_000 / line.length) * 20_000;
    for (let row = 0; row < rows; row += 20_000) appendFileSync(file, line);
    write("past.csv", "a\n1\n");
    truncateSync(path.join(bench.folder, "past.csv"), 256 * 1024 * 1024 + 1);
    const data = await bench.open();
    const { outcome, error } = await run(openTurn(data.evidence), "set_result([len(huge), float(huge['amount'].sum())])", ["huge"]);
    expect([outcome?.resultJson, error]).toEqual([`[${rows},${(rows * 12.5).toFixed(1)}]`, null]);
    expect(outcome!.usage.peakMemoryBytes).toBeLessThan(bench.runtime.limits.memoryBytes);
    const refused = {
      error_code: "INPUT_TOO_LARGE",
      summary: "Inputs have 268435457 bytes with past, 268435456 are allowed.",
      hints: ["Bind less, or raise the limit inputBytes."],
    };
    expect((await run(openTurn(data.evidence), "set_result(len(past))", ["past"])).error).toMatchObject(refused);
    expect(toolErrorOf(await data.readData({ alias: "past" }))).toMatchObject(refused);
  });

  test("of more than 20 MB reach a cell completely", async () => {
    const line = "2024-01-01,north,12.5,a note of some length that fills the line up to a hundred bytes or so, yes\n";
    const rows = Math.ceil((21 * 1024 * 1024) / line.length);
    write("large.csv", `day,region,amount,note,end\n${line.repeat(rows)}`);
    const data = await bench.open();
    const { outcome, error } = await run(openTurn(data.evidence), "set_result([len(large), float(large['amount'].sum())])", ["large"]);
    expect([outcome?.resultJson, error]).toEqual([`[${rows},${(rows * 12.5).toFixed(1)}]`, null]);
    expect(contentOf(await data.readData({ alias: "large", offset: rows - 1 }))).toMatchObject({
      total: rows,
      returned: 1,
      nextOffset: null,
    });
  });
});
