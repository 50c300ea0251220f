import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aliasSchema, tableRowsSchema, tableSchemaSchema } from "../src/protocol/http-tables.ts";
import { turnDocumentSchema, type TurnDocument } from "../src/protocol/http-turns.ts";
import type { ModelScript } from "../src/models/model-script.ts";
import { openTestServer, plainScript, type TestServer } from "./fixtures/open-test-server.ts";

describe("files and tables", { timeout: 240_000 }, () => {
  let open: TestServer;
  let turn: TurnDocument;
  beforeAll(async () => {
    open = await openTestServer();
    turn = (await open.call("POST", "/api/turns", { question: "Draw it.", conversationId: "files", wait: true }, turnDocumentSchema)).body;
  });
  afterAll(() => open[Symbol.asyncDispose]());

  const bytesOf = async (path: string): Promise<Buffer> => Buffer.from(await (await open.request(path)).arrayBuffer());

  test("serves artifacts by their hash, as immutable, and never as another content type", async () => {
    const { contentHash, url, bytes } = turn.result!.artifacts[0] as { contentHash: string; url: string; bytes: number };
    const response = await open.request(url);
    expect(response.status).toBe(200);
    expect(
      Object.fromEntries(
        ["content-type", "content-length", "cache-control", "etag", "x-content-type-options", "content-security-policy"].map((name) => [
          name,
          response.headers.get(name),
        ]),
      ),
    ).toEqual({
      "content-type": "image/png",
      "content-length": String(bytes),
      "cache-control": "private, max-age=31536000, immutable",
      etag: `"${contentHash}"`,
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    });
    const body = Buffer.from(await response.arrayBuffer());
    expect(createHash("sha256").update(body).digest("hex")).toBe(contentHash);
    const known = await open.request(url, { headers: { "if-none-match": `"other", "${contentHash}"` } });
    expect([known.status, await known.text()]).toEqual([304, ""]);
    const saved = await open.request(`${url}?download=1`);
    expect(saved.headers.get("content-disposition")).toBe(`attachment; filename="${contentHash.slice(0, 12)}.png"`);
  });

  test("answers 404 for names that do not exist or are invalid", async () => {
    const { contentHash } = turn.result!.artifacts[0]!;
    for (const path of [
      `/artifacts/${contentHash}.json`,
      `/artifacts/${contentHash}.svg`,
      `/artifacts/${"0".repeat(64)}.png`,
      "/artifacts/..%2f..%2fhistory.sqlite.png",
      "/artifacts/../history.sqlite",
      "/data/ds_none.json",
      "/data/ds_none/tables/x.csv",
      "/api/nothing",
    ]) {
      const response = await open.request(path);
      expect([path, response.status, response.headers.get("content-type")]).toEqual([path, 404, "application/json; charset=utf-8"]);
    }
  });

  test("serves a dataset as one document, and its tables as Parquet and as CSV without formulas", async () => {
    const { publicDataUrl, hash } = turn.result!.dataset!;
    const whole = await bytesOf(publicDataUrl);
    expect(createHash("sha256").update(whole).digest("hex")).toBe(hash);
    const csv = await open.request(publicDataUrl.replace(".json", "/tables/get_prices_1.csv"));
    expect([csv.headers.get("content-type"), csv.headers.get("cache-control")]).toEqual([
      "text/csv; charset=utf-8; header=present",
      "private, max-age=31536000, immutable",
    ]);
    const lines = (await csv.text()).split("\n");
    expect([lines[0], lines[1], lines[2], lines.length]).toEqual([
      "day,name,price,big",
      "0,'=SUM(A1),100,9007199254740993",
      "1,plain,101,9007199254740993",
      302,
    ]);
    const parquet = await bytesOf(publicDataUrl.replace(".json", "/tables/get_prices_1.parquet"));
    expect([parquet.subarray(0, 4).toString(), parquet.subarray(-4).toString()]).toEqual(["PAR1", "PAR1"]);
    expect((await open.request(publicDataUrl.replace(".json", "/tables/none.csv"))).status).toBe(404);
  });

  test("pages, filters and sorts the rows of an alias without losing digits of large integers", async () => {
    const base = "/api/conversations/files/aliases/get_prices_1";
    const { body: schema } = await open.call("GET", `${base}/schema`, undefined, tableSchemaSchema);
    expect([schema.rows, schema.columns.map(({ name, type, nulls, min, max }) => [name, type, nulls, min, max]).slice(0, 3)]).toEqual([
      300,
      [
        ["day", "integer", 0, 0, 299],
        ["name", "text", 0, "=SUM(A1)", "plain"],
        ["price", "integer", 0, 100, 106],
      ],
    ]);
    const query = new URLSearchParams({
      offset: "1",
      limit: "2",
      filter: JSON.stringify([{ column: "price", op: "ge", value: 106 }]),
      sort: JSON.stringify([{ column: "day", descending: true }]),
      columns: JSON.stringify(["day", "price"]),
    });
    const page = await open.call("GET", `${base}/rows?${query.toString()}`, undefined, tableRowsSchema);
    expect(page.body).toMatchObject({
      columns: ["day", "price"],
      rows: [
        [286, 106],
        [279, 106],
      ],
      offset: 1,
      returned: 2,
      total: 300,
      matched: 42,
      nextOffset: 3,
    });
    const raw = await (await open.request(`${base}/rows?limit=1`)).text();
    expect(raw).toContain("9007199254740993");
    const wrong = await open.call<{ error: { code: string; message: string } }>("GET", `${base}/rows?filter=nonsense`);
    expect([wrong.status, wrong.body.error.message]).toEqual([400, "The query is invalid: filter: must be a JSON array."]);
    const none = await open.call<{ error: { code: string } }>("GET", "/api/conversations/files/aliases/none/rows");
    expect([none.status, none.body.error.code]).toEqual([404, "ALIAS_UNKNOWN"]);
  });

  test("downloads an alias as CSV, Parquet and JSON", async () => {
    const base = "/api/conversations/files/tables";
    const csv = await open.request(`${base}/get_prices_1.csv`);
    expect(csv.headers.get("content-disposition")).toBe('attachment; filename="get_prices_1.csv"');
    expect((await csv.text()).split("\n")[1]).toBe("0,'=SUM(A1),100,9007199254740993");
    expect((await bytesOf(`${base}/get_prices_1.parquet`)).subarray(0, 4).toString()).toBe("PAR1");
    expect(JSON.parse((await bytesOf(`${base}/result_1.json`)).toString())).toEqual({ mean: expect.closeTo(102.98, 1) });
    expect((await open.request(`${base}/none.csv`)).status).toBe(404);
  });

  test("converts rows of a client to Parquet and keeps the order of the columns", async () => {
    const post = (body: unknown): Promise<Response> =>
      open.request("/api/tables.parquet", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const made = await post({
      columns: ["month", "2024"],
      rows: [
        ["Jan", 1.5],
        ["Feb", null],
        ["01", 2],
      ],
    });
    expect([made.status, made.headers.get("content-type")]).toEqual([200, "application/vnd.apache.parquet"]);
    const upload = { method: "POST", body: Buffer.from(await made.arrayBuffer()) };
    expect((await open.request("/api/conversations/files/files?name=written.parquet", upload)).status).toBe(201);
    const { body } = await open.call("GET", "/api/conversations/files/aliases/written/rows", undefined, tableRowsSchema);
    expect([body.columns, body.rows]).toEqual([
      ["month", "2024"],
      [
        ["Jan", 1.5],
        ["Feb", null],
        ["01", 2],
      ],
    ]);
    for (const [table, problem] of [
      [{ columns: ["a", "a"], rows: [] }, "columns: must not repeat a name."],
      [{ columns: ["a"], rows: [[1, 2]] }, "rows: must have one cell for each column."],
    ] as const) {
      const refused = await post(table);
      const { error } = (await refused.json()) as { error: { message: string } };
      expect([refused.status, error.message]).toEqual([400, `The body is invalid: ${problem}`]);
    }
    expect((await post({ columns: ["a"], rows: [["x".repeat(17 * 1024 * 1024)]] })).status).toBe(413);
  });

  test("reports that a table cannot be downloaded as CSV before it sends anything", async () => {
    const wide = JSON.stringify(Array.from({ length: 20_000 }, (_, at) => ({ [`column_${at}`]: at })));
    for (const [name, body] of [
      ["wide.json", wide],
      ["damaged.xlsx", "PK but no workbook"],
    ] as const)
      expect((await open.request(`/api/conversations/odd/files?name=${name}`, { method: "POST", body })).status).toBe(201);
    const refused = await open.call<{ error: { code: string; message: string } }>("GET", "/api/conversations/odd/tables/wide.csv");
    expect([refused.status, refused.body.error.code]).toEqual([422, "CSV_NOT_MADE"]);
    expect(refused.body.error.message).toBe(
      "The table wide cannot be downloaded as CSV: it has 20000 columns; a CSV file can have at most 16384.",
    );
    const damaged = await open.call<{ error: { code: string } }>("GET", "/api/conversations/odd/tables/damaged.csv");
    expect([damaged.status, damaged.body.error.code]).toEqual([422, "CSV_NOT_MADE"]);
  });

  test("stores an uploaded file as an alias that Python can read, also after a restart", async () => {
    const send = (name: string, body: string, id = "uploads"): Promise<Response> =>
      open.request(`/api/conversations/${id}/files?name=${encodeURIComponent(name)}`, { method: "POST", body });
    const taken = await send("sales 2024.csv", "city,sold\nOslo,3\nRome,4\n");
    expect(taken.status).toBe(201);
    const alias = aliasSchema.parse(await taken.json());
    expect(alias).toMatchObject({
      alias: "sales_2024",
      source: "data",
      tool: "sales 2024",
      format: "csv",
      bytes: 24,
      rows: 2,
      columns: ["city", "sold"],
      hasTable: true,
    });
    for (const [name, status, code] of [
      ["virus.exe", 415, "UPLOAD_TYPE_UNKNOWN"],
      ["empty.csv", 422, "UPLOAD_NOT_AS_NAMED"],
      ["table.parquet", 422, "UPLOAD_NOT_AS_NAMED"],
    ] as const) {
      const refused = await send(name, name === "empty.csv" ? "" : "text");
      expect([name, refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([name, status, code]);
    }
    const cell = {
      tool: "code_interpreter",
      input: {
        code: "set_result(int(to_frame(sales_2024)['sold'].sum()))",
        postProcessingContract: {
          operation: "aggregate",
          reason: "The sum is asked for.",
          inputAliases: ["sales_2024"],
          expectedArtifacts: [],
        },
      },
    };
    const script: ModelScript = { steps: [{ toolCalls: [cell] }, plainScript.steps[2]!], synthesis: "Seven." };
    await open.restart({ script });
    const { body } = await open.call(
      "POST",
      "/api/turns",
      { question: "The sum?", conversationId: "uploads", wait: true },
      turnDocumentSchema,
    );
    expect(body.cells.map(({ status, resultAlias }) => [status, resultAlias])).toEqual([["ok", "result_1"]]);
    expect((await bytesOf("/api/conversations/uploads/tables/result_1.json")).toString()).toBe("7");
    const rows = await open.call("GET", "/api/conversations/uploads/aliases/sales_2024/rows?search=rom", undefined, tableRowsSchema);
    expect(rows.body).toMatchObject({ columns: ["city", "sold"], rows: [["Rome", 4]], total: 2, matched: 1 });
  });
});
