import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { ConversationData } from "../src/data/conversation-data.ts";
import { dataTools } from "../src/data/data-tools.ts";
import { runAsTenant } from "../src/concurrency/tenant.ts";
import { createTables } from "../src/data/tables/create-tables.ts";
import { toolErrorOf, makeFile, openDataBench, contentOf, type DataBench } from "./data-fixtures.ts";

interface Page {
  columns: string[];
  rows: unknown[];
  offset: number;
  returned: number;
  total: number;
  matched: number;
  nextOffset: number | null;
  notes: string[];
}

const MILLION = 1_000_000;

/** The tests open many sandboxes, which is slow on a busy machine. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

describe("tables", () => {
  let bench: DataBench;

  beforeAll(() => {
    bench = openDataBench();
  });
  afterEach(() => {
    rmSync(bench.folder, { recursive: true, force: true });
    mkdirSync(bench.folder);
  });
  afterAll(() => bench[Symbol.asyncDispose]());

  const write = (name: string, content: string | Uint8Array): void => writeFileSync(path.join(bench.folder, name), content);
  const readPage = async (data: ConversationData, call: Record<string, unknown>): Promise<Page> => contentOf(await data.page(call)) as Page;
  const rowsOf = async (data: ConversationData, call: Record<string, unknown>): Promise<unknown> => (await readPage(data, call)).rows;

  test("of a million rows are described, paged, filtered, searched and sorted inside their sandbox", async () => {
    const lines = ["id,region,amount,note"];
    for (let id = 0; id < MILLION; id += 1)
      lines.push(`${id},${["north", "south", "east", ""][id % 4]},${(id * 7919) % 1000}.5,note ${id % 9973}`);
    write("orders.csv", `${lines.join("\n")}\n`);
    const data = await bench.open();
    const schema = contentOf(await data.schema("orders")) as { rows: number; columns: Record<string, unknown>[] };
    expect([schema.rows, schema.columns]).toEqual([
      MILLION,
      [
        {
          name: "id",
          dtype: "int64",
          type: "integer",
          nulls: 0,
          nullShare: 0,
          distinct: MILLION,
          min: 0,
          max: 999_999,
          mean: 499_999.5,
          examples: [0, 1, 2],
        },
        {
          name: "region",
          dtype: "str",
          type: "text",
          nulls: 250_000,
          nullShare: 0.25,
          distinct: 3,
          min: "east",
          max: "south",
          examples: ["north", "south", "east"],
        },
        {
          name: "amount",
          dtype: "float64",
          type: "number",
          nulls: 0,
          nullShare: 0,
          distinct: 1000,
          min: 0.5,
          max: 999.5,
          mean: 500,
          examples: [0.5, 919.5, 838.5],
        },
        {
          name: "note",
          dtype: "str",
          type: "text",
          nulls: 0,
          nullShare: 0,
          distinct: 9973,
          min: "note 0",
          max: "",
          examples: ["note 0", "note 1", "note 2"],
        },
      ].map((column) => (column.name === "note" ? { ...column, max: expect.stringMatching(/^note 99/) as string } : column)),
    ]);
    expect(await readPage(data, { alias: "orders", offset: 999_999, limit: 5 })).toMatchObject({
      rows: [[999_999, null, 81.5, "note 2699"]],
      total: MILLION,
      matched: MILLION,
      nextOffset: null,
    });
    expect(
      await readPage(data, {
        alias: "orders",
        limit: 2,
        filter: [
          { column: "region", op: "eq", value: "east" },
          { column: "amount", op: "ge", value: 998 },
        ],
      }),
    ).toMatchObject({ matched: 1000, total: MILLION, returned: 2, nextOffset: 2 });
    expect(await readPage(data, { alias: "orders", search: "NOTE 9972", columns: ["id"], limit: 1000 })).toMatchObject({
      matched: 100,
      nextOffset: null,
    });
    const sorted = await readPage(data, {
      alias: "orders",
      sort: [{ column: "amount", descending: true }, { column: "id" }],
      limit: 2,
      offset: 1000,
      columns: ["amount", "id"],
    });
    expect(sorted.rows).toEqual([
      [998.5, 642],
      [998.5, 1642],
    ]);
    expect((await data.readData({ alias: "orders", offset: 2 * MILLION })).ok).toBe(true);
    expect(process.memoryUsage().heapUsed).toBeLessThan(1024 ** 3);
  });

  test("exist for every alias: nested tool outputs, maps, lists, scalars, results and stored data", async () => {
    const data = await bench.open();
    const { evidence } = data;
    evidence.add({ tool: "get_rows", output: `{"status":"ok","data":{"items":[{"id":12345678901234567890,"x":1.5},{"id":null,"x":2}]}}` });
    evidence.add({ tool: "get_map", output: Object.fromEntries(["a", "b", "c", "d"].map((key, at) => [key, { at, n: { deep: [at] } }])) });
    evidence.add({ tool: "get_list", output: ["x", 1, null, { a: 1 }] });
    evidence.add({ tool: "get_one", output: 7 });
    evidence.addResult({ json: '[{"total":3}]', from: "code_interpreter" });
    await data.storeData({ name: "given", csv: "a,b\n1,x\n" });
    expect((await data.readData({ alias: "get_rows_1" })) as unknown).toMatchObject({
      json: expect.stringContaining('"rows":[{"id":12345678901234567890,"x":1.5},{"id":null,"x":2.0}]') as string,
    });
    expect(await rowsOf(data, { alias: "get_map_1" })).toEqual([
      ["a", 0, { deep: [0] }],
      ["b", 1, { deep: [1] }],
      ["c", 2, { deep: [2] }],
      ["d", 3, { deep: [3] }],
    ]);
    expect(await rowsOf(data, { alias: "get_list_1" })).toEqual([["x"], [1], [null], [{ a: 1 }]]);
    expect(await rowsOf(data, { alias: "get_one_1" })).toEqual([[7]]);
    expect(await rowsOf(data, { alias: "result_1" })).toEqual([[3]]);
    expect(await rowsOf(data, { alias: "given" })).toEqual([[1, "x"]]);
    const named = (alias: string) => ({ alias, _contextAlias: alias });
    expect(contentOf(await data.listData())).toEqual({
      data: [
        {
          ...named("get_rows_1"),
          source: "tool",
          name: "get_rows",
          format: "json",
          bytes: 88,
          rows: 2,
          columns: [{ name: "id" }, { name: "x" }],
        },
        {
          ...named("get_map_1"),
          source: "tool",
          name: "get_map",
          format: "json",
          bytes: 121,
          rows: null,
          columns: ["a", "b", "c", "d"].map((name) => ({ name })),
        },
        { ...named("get_list_1"), source: "tool", name: "get_list", format: "json", bytes: 20, rows: 4, columns: [{ name: "a" }] },
        { ...named("get_one_1"), source: "tool", name: "get_one", format: "json", bytes: 1, rows: null, columns: [] },
        {
          ...named("result_1"),
          source: "result",
          name: "code_interpreter",
          format: "json",
          bytes: 13,
          rows: 1,
          columns: [{ name: "total" }],
        },
        {
          ...named("given"),
          source: "data",
          name: "given",
          format: "csv",
          bytes: 8,
          rows: 1,
          columns: [
            { name: "a", type: "integer" },
            { name: "b", type: "text" },
          ],
        },
      ],
      notes: [],
    });
  });

  test("can be filtered with every operator, and nulls match isNull only", async () => {
    const made = `df = pd.DataFrame({"n": [1, 2, None], "t": ["Ann", "bob", None], "b": [True, False, True],
      "d": pd.to_datetime(["2024-01-01", "2024-06-01", None]), "z": pd.to_datetime(["2024-01-01T00:00Z", None, "2024-03-01T12:00Z"])})
df.to_parquet("made")`;
    write("all.parquet", await makeFile(bench.runtime, made));
    const data = await bench.open();
    const matched = async (column: string, op: string, value?: unknown): Promise<unknown> =>
      ((await rowsOf(data, { alias: "all_data", columns: ["n"], filter: [{ column, op, value }] })) as unknown[][]).map(([n]) => n);
    expect({
      eq: await matched("n", "eq", 1),
      eqText: await matched("n", "eq", "1"),
      ne: await matched("n", "ne", 1),
      lt: await matched("n", "lt", 2),
      le: await matched("n", "le", 2),
      gt: await matched("n", "gt", 1.5),
      ge: await matched("n", "ge", 2),
      in: await matched("t", "in", ["Ann", "eve"]),
      contains: await matched("t", "contains", "B"),
      startsWith: await matched("t", "startsWith", "a"),
      isNull: await matched("t", "isNull"),
      notNull: await matched("t", "notNull"),
      boolean: await matched("b", "eq", false),
      day: await matched("d", "ge", "2024-02-01"),
      zone: await matched("z", "lt", "2024-01-01T03:00+02:00"),
      text: await matched("d", "contains", "2024-06"),
    }).toEqual({
      eq: [1],
      eqText: [1],
      ne: [2],
      lt: [1],
      le: [1, 2],
      gt: [2],
      ge: [2],
      in: [1],
      contains: [2],
      startsWith: [1],
      isNull: [null],
      notNull: [1, 2],
      boolean: [2],
      day: [2],
      zone: [1],
      text: [2],
    });
    expect(await rowsOf(data, { alias: "all_data", columns: ["d", "z", "b"], sort: [{ column: "d", descending: true }] })).toEqual([
      ["2024-06-01T00:00:00", null, false],
      ["2024-01-01T00:00:00", "2024-01-01T00:00:00+00:00", true],
      [null, "2024-03-01T12:00:00+00:00", true],
    ]);
  });

  test("can have values of any type and columns of any name", async () => {
    const made = `from decimal import Decimal
import datetime
df = pd.DataFrame({"dec": [Decimal("1.10"), None, Decimal("20")], "day": [datetime.date(2024, 1, 1), None, datetime.date(2024, 2, 1)],
  "cat": pd.Categorical(["b", None, "a"]), "span": pd.to_timedelta([1, None, 90], unit="s"), "raw": [b"xyz", None, b""], '"rows":[]': [1, 2, 3],
  "inf": [float("inf"), 0.5, None]})
df.to_parquet("made")`;
    write("kinds.parquet", await makeFile(bench.runtime, made));
    write("odd.json", String.raw`[{"":2,"__proto__":3,"a b":"\ud83d\ude00"},{"":"x"}]`);
    write("broken.json", String.raw`[{"\ud800":1}]`);
    const data = await bench.open();
    expect(contentOf(await data.readData({ alias: "broken" }))).toEqual([
      "DATA_UNREADABLE",
      String.raw`Cannot read broken: building a table from it failed: 'utf-8' codec can't encode character '\ud800' in position 0: surrogates not allowed.`,
    ]);
    expect(await readPage(data, { alias: "kinds" })).toMatchObject({
      columns: ["dec", "day", "cat", "span", "raw", '"rows":[]', "inf"],
      rows: [
        ["1.10", "2024-01-01", "b", 1, "<3 bytes>", 1, null],
        [null, null, null, null, null, 2, 0.5],
        ["20.00", "2024-02-01", "a", 90, "<0 bytes>", 3, null],
      ],
    });
    const matched = async (column: string, op: string, value: unknown): Promise<unknown> =>
      ((await rowsOf(data, { alias: "kinds", columns: ['"rows":[]'], filter: [{ column, op, value }] })) as unknown[][]).map(([n]) => n);
    expect([
      await matched("dec", "eq", 1.1),
      await matched("dec", "gt", 5),
      await matched("day", "ge", "2024-01-15"),
      await matched("cat", "gt", "a"),
      await matched("span", "eq", 90),
      await matched("raw", "contains", "3 BYTES"),
      await matched("inf", "gt", 1),
    ]).toEqual([[1], [3], [3], [1], [3], [1], [1]]);
    const sorted = async (column: string): Promise<unknown> =>
      ((await rowsOf(data, { alias: "kinds", columns: ['"rows":[]'], sort: [{ column }] })) as unknown[][]).map(([n]) => n);
    expect([await sorted("dec"), await sorted("day"), await sorted("cat"), await sorted("raw")]).toEqual([
      [1, 3, 2],
      [1, 3, 2],
      [3, 1, 2],
      [3, 1, 2],
    ]);
    expect(await readPage(data, { alias: "odd" })).toMatchObject({
      columns: ["", "__proto__", "a b"],
      rows: [
        [2, 3, "\u{1F600}"],
        ["x", null, null],
      ],
    });
    expect(await rowsOf(data, { alias: "odd", columns: [""], sort: [{ column: "" }], search: "x" })).toEqual([["x"]]);
    expect(contentOf(await data.schema("kinds"))).toMatchObject({ rows: 3, columnCount: 7 });
  });

  test("refuse a wrong query with a helpful message, and stay usable", async () => {
    write("sales.csv", "region,amount\nnorth,1\n");
    const data = await bench.open();
    expect(contentOf(await data.readData({ alias: "sale" }))).toEqual([
      "ALIAS_UNKNOWN",
      'There is no data named "sale". Did you mean sales? Known aliases: sales.',
    ]);
    expect(contentOf(await data.readData({ alias: "sales", columns: ["Amount"] }))).toEqual([
      "COLUMN_UNKNOWN",
      'sales has no column "Amount". Did you mean "amount"? Columns: region, amount.',
    ]);
    expect(contentOf(await data.readData({ alias: "sales", sort: [{ column: "x'; import os #" }] }))).toEqual([
      "COLUMN_UNKNOWN",
      'sales has no column "x\'; import os #". Columns: region, amount.',
    ]);
    expect(contentOf(await data.readData({ alias: "sales", filter: [{ column: "amount", op: "gt", value: "much" }] }))).toEqual([
      "FILTER_VALUE_INVALID",
      'The column amount of sales has values of type integer, which cannot be compared with "much".',
    ]);
    expect(toolErrorOf(await data.readData({ alias: "sales", limit: 501, filter: [{ column: "amount", op: "near" }] }))).toEqual({
      error_kind: "mcp_input_validation",
      tool: "read_data",
      summary: "Nothing was done. limit must be at most 500, not 501. And 1 more problem.",
      details: [
        { path: "limit", issue: "limit must be at most 500, not 501.", received_type: "number", error_code: "SCHEMA_MAXIMUM" },
        {
          path: "filter[0].op",
          issue:
            'filter[0].op must be one of "eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "startsWith", "isNull", "notNull", not "near".',
          received_type: "string",
          error_code: "SCHEMA_ENUM_MISMATCH",
        },
      ],
      hints: [],
      examples: [
        {
          alias: "sales",
          limit: 20,
          filter: [{ column: "region", op: "eq", value: "north" }],
          sort: [{ column: "amount", descending: true }],
        },
      ],
      error_code: "SCHEMA_VALIDATION_FAILED",
      retryable: false,
      _envelope_version: 1,
    });
    expect(await rowsOf(data, { alias: "sales", search: "\u{1f600} \\ \" ' \n" })).toEqual([]);
    expect(await rowsOf(data, { alias: "sales" })).toEqual([["north", 1]]);
  });

  test("keep pages within the size limit, and say what was cut", async () => {
    write("wide.jsonl", `${JSON.stringify({ id: 1, text: "\u00e9".repeat(9000) })}\n`.repeat(100));
    const data = await bench.open();
    const answer = await data.readData({ alias: "wide", limit: 100 });
    const page = contentOf(answer) as Page;
    expect(page).toMatchObject({
      total: 100,
      returned: 31,
      nextOffset: 31,
      notes: [
        "Only 31 of the 100 requested rows fit into 32768 bytes. Continue at nextOffset, or request fewer columns.",
        "32 cell(s) are longer than 500 characters and were shortened. Python has the full values.",
      ].map((note) => (note.startsWith("32") ? (expect.stringContaining("cell(s) are longer than 500 characters") as string) : note)),
    });
    expect(page.rows[0]).toEqual({ id: 1, text: `${"\u00e9".repeat(500)}… [+8500 characters]` });
  });

  test("keep their sandbox while idle, and give it up after a while or when another call waits for one", async () => {
    let open = 0;
    const gate = { places: 8, waiting: 0, onWaiting: () => () => {} };
    await using tables = createTables({
      openCellSession: async (options) => {
        const cellSession = await bench.runtime.openCellSession(options);
        open += 1;
        return { ...cellSession, close: async () => ((open -= 1), await cellSession.close()) };
      },
      gate,
      maxOpen: 1,
      idleMs: 60_000,
    });
    const data = await bench.open();
    const items = ["one", "two"].map((name) => data.evidence.addData({ name, format: "csv", bytes: Buffer.from("a\n1\n") }));
    const query = { ask: "schema" } as const;
    const [first, second] = await Promise.all(items.map((item) => tables.query(item, query)));
    expect([first!.ok, second!.ok]).toEqual([true, true]);
    await expect.poll(() => open).toBe(1);
    gate.waiting = 1;
    await expect.poll(() => open).toBe(0);
    gate.waiting = 0;
    expect((await tables.query(items[0]!, query)).ok).toBe(true);
    const aborted = AbortSignal.abort(new Error("gone"));
    await expect(tables.query(items[0]!, query, { signal: aborted })).rejects.toThrow("gone");
    expect((await tables.query(items[0]!, query)).ok).toBe(true);
  });

  test("are opened for tenants in turn, however many one of them waits for", async () => {
    const { gate, openCellSession } = bench.runtime;
    await using tables = createTables({ openCellSession, gate, maxOpen: 1 });
    const data = await bench.open();
    const order: string[] = [];
    const read = async (tenant: string, name: string): Promise<void> => {
      const item = data.evidence.addData({ name, format: "csv", bytes: Buffer.from("a\n1\n") });
      const reply = await runAsTenant(tenant, () => tables.query(item, { ask: "schema" }));
      order.push(reply.ok ? tenant : "refused");
    };
    await Promise.all([...["g1", "g2", "g3", "g4"].map((name) => read("greedy", name)), read("neighbour", "n1")]);
    expect(order).toEqual(["greedy", "neighbour", "greedy", "greedy", "greedy"]);
  });

  test("stop a query when all its callers aborted, and finish it otherwise", async () => {
    const { gate, openCellSession } = bench.runtime;
    await using tables = createTables({ openCellSession, gate, idleMs: 3_600_000, graceMs: 0 });
    write("many.csv", Buffer.concat([Buffer.from("a,b\n"), Buffer.alloc(60_000_000, "123,4567890\n")]));
    const { evidence } = await bench.open();
    const many = evidence.get("many")!;
    const [one, other] = [new AbortController(), new AbortController()];
    const before = gate.taken;
    const queries = [one, other].map(({ signal }) => tables.query(many, { ask: "schema" }, { signal }));
    await expect.poll(() => gate.taken).toBe(before + 1);
    one.abort(new Error("the first caller left"));
    await expect(queries[0]).rejects.toThrow("the first caller left");
    expect(gate.taken).toBe(before + 1);
    other.abort(new Error("the other caller left"));
    await expect(queries[1]).rejects.toThrow("the other caller left");
    await expect.poll(() => gate.taken, { timeout: 60_000 }).toBe(before);
    const reply = await tables.query(many, { ask: "schema" }, { signal: AbortSignal.timeout(3_600_000) });
    expect(reply.ok && JSON.parse(reply.json)).toMatchObject({ rows: 5_000_000 });
  });

  test("are stored under the requested name, or refused with the reason", async () => {
    const data = await bench.open();
    expect(contentOf(await data.storeData({ name: "sales", data: [{ a: 1, b: "x" }] }))).toEqual({
      alias: "sales",
      _contextAlias: "sales",
      format: "json",
      bytes: 17,
      rows: 1,
      columns: ["a", "b"],
      notes: ["In Python, the data is available as sales. Name it in inputAliases."],
    });
    expect(toolErrorOf(await data.storeData({ name: "sales", data: [] }))).toEqual({
      error_kind: "mcp_input_validation",
      tool: "store_data",
      summary: "The name sales is already in use, and existing data is never overwritten. Nothing was stored.",
      details: [{ path: "name", issue: "is already in use", received_type: "string" }],
      hints: ["The name sales_2 is available."],
      examples: [],
      error_code: "DATA_NAME_TAKEN",
      retryable: false,
      _envelope_version: 1,
    });
    for (const name of ["my sales", "class", "print", "pd", "1st", "__x__", "größe", "../x"]) {
      expect(contentOf(await data.storeData({ name, data: [] }))).toEqual([
        "DATA_NAME_INVALID",
        expect.stringContaining("Nothing was stored.") as string,
      ]);
    }
    expect(contentOf(await data.storeData({ name: "text", data: '[{"a": 1}]' }))).toMatchObject({
      rows: 1,
      notes: [
        "In Python, the data is available as text. Name it in inputAliases.",
        "data was JSON in a string; the parsed value was stored.",
      ],
    });
    expect(contentOf(await data.storeData({ name: "large", data: [2 ** 60] }))).toMatchObject({
      notes: [
        "In Python, the data is available as large. Name it in inputAliases.",
        "1 integer(s) above 2^53 may have been rounded before they arrived. Send them as strings or as csv.",
      ],
    });
    expect(contentOf(await data.storeData({ name: "ragged", csv: "a,b\n1,2\n1,2,3\n" }))).toEqual([
      "DATA_INVALID",
      "Nothing was stored. Cannot read ragged: input 'ragged' is not readable as csv: Line 3 has 3 cells, but the header has 2. Quote cells that contain the delimiter, or remove what stands above the header.",
    ]);
    expect(contentOf(await data.storeData({ name: "none", csv: "" }))).toEqual([
      "DATA_INVALID",
      "Nothing was stored. Cannot read none: input 'none' is not readable as csv: It is empty: there is no header line.",
    ]);
    expect(contentOf(await data.storeData({ name: "both", csv: "a\n", data: [] }))).toEqual([
      "SCHEMA_VALIDATION_FAILED",
      "Nothing was done. The call has both data and csv; give one of them.",
    ]);
  });

  test("have tools with short descriptions that never throw for wrong arguments", async () => {
    const data = await bench.open();
    expect(dataTools.map(({ name, description }) => [name, description.length <= 200])).toEqual([
      ["store_data", true],
      ["list_data", true],
      ["read_data", true],
    ]);
    for (const { run } of dataTools)
      for (const input of [null, undefined, 7, "x", [], { alias: {} }, { aliases: ["nothing"] }, { name: 1 }])
        expect(["ok", "refused"]).toContain((await run(input, { data })).status);
  });
});
