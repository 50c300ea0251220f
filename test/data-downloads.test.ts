import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { TableDownload } from "../src/data/conversation-data.ts";
import { openAliasDownload, openTableDownload } from "../src/data/open-table-download.ts";
import { createUploadStore } from "../src/data/create-upload-store.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { createDatasetMemoryStore } from "../src/evidence/dataset/create-dataset-store.ts";
import { makeFile, openDataBench, contentOf, type DataBench } from "./data-fixtures.ts";

/** Text that a spreadsheet would run as a formula, and numbers that only look like it. */
const cells = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\ttab", "\rreturn", "-5", "+5e3", "plain", 'say "hi"', "a,b", "two\nlines"];
const written = [
  "'=1+1",
  "'+cmd",
  "'-2+3",
  "'@SUM(A1)",
  "'\ttab",
  `"'\rreturn"`,
  "-5",
  "+5e3",
  "plain",
  '"say ""hi"""',
  '"a,b"',
  '"two\nlines"',
];

/** The tests open many sandboxes, which is slow on a busy machine. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

describe("downloads of tables", () => {
  let bench: DataBench;
  beforeAll(() => {
    bench = openDataBench();
  });
  afterAll(() => bench[Symbol.asyncDispose]());

  const textOf = async (download: TableDownload | null): Promise<string> =>
    Buffer.concat(await Array.fromAsync(download!.stream())).toString();
  const csvOf = async (item: Parameters<typeof openAliasDownload>[0]["item"]): Promise<string> =>
    await textOf(await openAliasDownload({ item, as: "csv", openCellSession: bench.runtime.openCellSession }));

  test("neutralize formulas from every format, and never change a number", async () => {
    const evidence = createEvidenceStore();
    const rows = cells.map((text, at) => ({ "=n": -at, text }));
    const json = evidence.addData({ name: "as_json", format: "json", bytes: Buffer.from(JSON.stringify(rows)) });
    const jsonl = evidence.addData({
      name: "as_lines",
      format: "jsonl",
      bytes: Buffer.from(rows.map((row) => JSON.stringify(row)).join("\n")),
    });
    const quoted = rows.map((row) => `${row["=n"]},"${row.text.replaceAll('"', '""')}"\n`).join("");
    const csv = evidence.addData({ name: "as_csv", format: "csv", bytes: Buffer.from(`=n,text\n${quoted}`) });
    const code = (save: string): string => `import json\ndf = pd.DataFrame(json.loads(${JSON.stringify(JSON.stringify(rows))}))\n${save}`;
    const parquet = evidence.addData({
      name: "as_parquet",
      format: "parquet",
      bytes: await makeFile(bench.runtime, code('df.to_parquet("made")')),
    });
    const expected = ["'=n,text", ...written.map((text, at) => `${at === 0 ? "0" : -at},${text}`), ""].join("\n");
    expect(await csvOf(jsonl)).toBe(expected);
    expect(await csvOf(json)).toBe(expected);
    expect(await csvOf(csv)).toBe(expected);
    expect(await csvOf(parquet)).toBe(expected);
  });

  test("write times, nulls, booleans, nested values and Excel sheets", async () => {
    const made = `df = pd.DataFrame({"t": pd.to_datetime(["2024-01-01T10:00", None]), "b": [True, False], "i": pd.array([2**60, None], dtype="Int64"),
    "f": [0.1, float("nan")], "l": [[1, 2], None]})\ndf.to_parquet("made")`;
    const evidence = createEvidenceStore();
    const parquet = evidence.addData({ name: "kinds", format: "parquet", bytes: await makeFile(bench.runtime, made) });
    expect(await csvOf(parquet)).toBe('t,b,i,f,l\n2024-01-01T10:00:00,true,1152921504606846976,0.1,"[1, 2]"\n,false,,,\n');
    const excel = `pd.DataFrame({"a": [1, 2], "@b": ["+x", "y"]}).to_excel("m.xlsx", index=False)\nimport os\nos.rename("m.xlsx", "made")`;
    const xlsx = evidence.addData({ name: "book", format: "xlsx", bytes: await makeFile(bench.runtime, excel) });
    expect(await csvOf(xlsx)).toBe("a,'@b\n1,'+x\n2,y\n");
    const asParquet = await openAliasDownload({ item: xlsx, as: "parquet", openCellSession: bench.runtime.openCellSession });
    expect([asParquet.fileName, asParquet.contentType]).toEqual(["book.parquet", "application/vnd.apache.parquet"]);
    const bytes = Buffer.concat(await Array.fromAsync(asParquet.stream()));
    expect([bytes.subarray(0, 4).toString(), bytes.length]).toEqual(["PAR1", asParquet.bytes]);
  });

  test("arrive complete and in order, in several chunks", async () => {
    const rows = 120_000;
    const evidence = createEvidenceStore();
    const lines = Array.from({ length: rows }, (_, id) => `${id},text number ${id} of a length\n`).join("");
    const csv = evidence.addData({ name: "many", format: "csv", bytes: Buffer.from(`id,text\n${lines}`) });
    const pieces = await Array.fromAsync(
      (await openAliasDownload({ item: csv, as: "csv", openCellSession: bench.runtime.openCellSession })).stream(),
    );
    expect(pieces.length).toBeGreaterThan(1);
    expect(Buffer.concat(pieces).toString()).toBe(`id,text\n${lines}`);
    const code = `pd.DataFrame({"id": range(${rows}), "text": [f"text number {n} of a length" for n in range(${rows})]}).to_parquet("made")`;
    const parquet = evidence.addData({ name: "many_parquet", format: "parquet", bytes: await makeFile(bench.runtime, code) });
    const slices = await Array.fromAsync(
      (await openAliasDownload({ item: parquet, as: "csv", openCellSession: bench.runtime.openCellSession })).stream(),
    );
    expect(slices.length).toBeGreaterThan(1);
    expect(Buffer.concat(slices).toString()).toBe(`id,text\n${lines}`);
    const records = Array.from({ length: rows }, (_, id) => ({ id, text: `text number ${id} of a length` }));
    const json = evidence.addData({ name: "many_json", format: "json", bytes: Buffer.from(JSON.stringify({ data: records })) });
    expect(await csvOf(json)).toBe(`id,text\n${lines}`);
  });

  test("exist for the tables of a turn's dataset", async () => {
    const datasets = createDatasetMemoryStore();
    const evidence = createEvidenceStore();
    evidence.add({ tool: "get_rows", output: '{"data":[{"id":1,"x":"=a"}]}' });
    evidence.addData({
      name: "book",
      format: "parquet",
      bytes: await makeFile(bench.runtime, 'pd.DataFrame({"a": [1]}).to_parquet("made")'),
    });
    evidence.add({ tool: "get_words", output: "no table" });
    const items = evidence.aliases().map((alias) => evidence.get(alias)!);
    const { hash } = await datasets.put({ facts: {}, items, artifacts: [] });
    expect((await datasets.open(hash))!.tables.map(({ name }) => name)).toEqual(["get_rows_1", "book"]);
    const { openCellSession } = bench.runtime;
    const open = (table: string, as: "csv" | "parquet"): Promise<TableDownload | null> =>
      openTableDownload({ datasets, hash, table, as, openCellSession });
    expect(await textOf(await open("get_rows_1", "csv"))).toBe("id,x\n1,'=a\n");
    expect(await textOf(await open("book", "csv"))).toBe("a\n1\n");
    const first = await textOf(await open("get_rows_1", "parquet"));
    expect([first.slice(0, 4), await textOf(await open("get_rows_1", "parquet"))]).toEqual(["PAR1", first]);
    expect([
      await open("nothing", "csv"),
      await open("get_words_1", "csv"),
      await openTableDownload({ datasets, hash: "0".repeat(64), table: "x", as: "csv", openCellSession }),
    ]).toEqual([null, null, null]);
  });

  test("report why a table cannot be written", async () => {
    const evidence = createEvidenceStore();
    const item = evidence.addData({ name: "fake", format: "parquet", bytes: Buffer.from("PAR1 no") });
    await expect(csvOf(item)).rejects.toMatchObject({
      code: "CSV_NOT_MADE",
      message: expect.stringContaining("The table fake cannot be downloaded as CSV") as string,
    });
    const keys = Array.from({ length: 16_385 }, (_, at) => [`k${at}`, 1]);
    const wide = evidence.addData({ name: "wide", format: "json", bytes: Buffer.from(JSON.stringify([Object.fromEntries(keys)])) });
    await expect(csvOf(wide)).rejects.toMatchObject({
      code: "CSV_NOT_MADE",
      message: "The table wide cannot be downloaded as CSV: it has 16385 columns; a CSV file can have at most 16384.",
    });
    const words = evidence.addData({ name: "words", format: "text", bytes: Buffer.from("x") });
    await expect(csvOf(words)).rejects.toMatchObject({ code: "NO_TABLE", message: "words is text and has no rows." });
  });

  test("work for uploads, which are aliases like any other", async () => {
    const uploads = createUploadStore({ directory: path.join(bench.folder, "uploads") });
    async function* content(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("a,b\n1,=x\n");
    }
    const upload = await uploads.put({ tenant: "t", fileName: "My upload.csv", content: content() });
    writeFileSync(path.join(bench.folder, "given.csv"), "a\n1\n");
    const data = await bench.open([path.join(bench.folder, "given.csv")]);
    const item = data.addUpload(upload);
    expect([item.alias, item.sha256, item.file?.kind]).toEqual(["My_upload", upload.sha256, "upload"]);
    expect(contentOf(await data.readData({ alias: "My_upload" }))).toMatchObject({ rows: [{ a: 1, b: "=x" }] });
    expect(await csvOf(item)).toBe("a,b\n1,'=x\n");
    expect(contentOf(await data.listData({ aliases: ["My_upload"] }))).toEqual({
      data: [
        {
          alias: "My_upload",
          _contextAlias: "My_upload",
          source: "upload",
          name: "My upload",
          format: "csv",
          bytes: 9,
          rows: 1,
          columns: [
            { name: "a", dtype: "int64", type: "integer", nulls: 0, nullShare: 0, distinct: 1, min: 1, max: 1, mean: 1, examples: [1] },
            { name: "b", dtype: "str", type: "text", nulls: 0, nullShare: 0, distinct: 1, min: "=x", max: "=x", examples: ["=x"] },
          ],
        },
      ],
      notes: [],
    });
  });
});
