import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { openAliasDownload } from "../src/data/open-table-download.ts";
import { createMemoryStore } from "../src/artifacts/artifact-store.ts";
import { aliasSchema, tableRowsSchema, tableSchemaSchema } from "../src/protocol/http-tables.ts";
import { runCodeInterpreter } from "../src/interpreter/code-interpreter.ts";
import { disposeTurnSandbox } from "../src/interpreter/interpreter-turn.ts";
import type { TableDownload } from "../src/data/conversation-data.ts";
import { contentOf, openDataBench, toolErrorOf, type DataBench } from "./data-fixtures.ts";
import { openTestServer } from "./fixtures/open-test-server.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const sluice = path.join(import.meta.dirname, "../bin/sluice");
const rows = [
  { name: "Müller", amount: 1234.5 },
  { name: "José", amount: 2.25 },
];
const german = "name;amount\r\nMüller;1.234,50\r\nJosé;2,25\r\n";
const ambiguous = 'name;amount\na;"1,234"\nb;567\n';

describe("CSV-like files", () => {
  let bench: DataBench;
  beforeAll(() => {
    bench = openDataBench();
  });
  afterEach(() => {
    rmSync(bench.folder, { recursive: true, force: true });
    mkdirSync(bench.folder);
  });
  afterAll(() => bench[Symbol.asyncDispose]());

  const write = (name: string, content: string | Uint8Array): string => {
    const file = path.join(bench.folder, name);
    writeFileSync(file, content);
    return file;
  };

  test.each([
    ["utf-8", Buffer.from(german)],
    ["utf-16le", Buffer.from(`\uFEFF${german}`, "utf16le")],
    ["windows-1252", Buffer.from(german, "latin1")],
  ])("in %s are read alike by schemas, pages, previews, downloads, charts and cells", async (encoding, content) => {
    write("sales.csv", content);
    const data = await bench.open();
    const { evidence } = data;
    const schema = contentOf(await data.schema("sales")) as { reader: { notes: { message: string }[] }; notes: string[] };
    expect(tableSchemaSchema.parse(schema)).toMatchObject({
      rows: 2,
      columns: [
        { name: "name", type: "text" },
        { name: "amount", type: "number", min: 2.25, max: 1234.5 },
      ],
      reader: {
        encoding: { value: encoding, from: "inferred" },
        delimiter: { value: ";", from: "inferred" },
        decimal: { value: ",", from: "inferred" },
      },
    });
    expect(schema.notes).toEqual(schema.reader.notes.map(({ message }) => message));
    expect(schema.notes.join(" ")).toContain("Cells are separated by semicolons. Numbers have decimal commas");
    expect(contentOf(await data.readData({ alias: "sales" }))).toMatchObject({ rows });
    expect(await data.chartRows(evidence.get("sales")!, { maxRows: 10 })).toEqual({ ok: true, rows, total: 2 });
    expect(JSON.parse(evidence.preview("sales").json)).toMatchObject({ rows: 2, readAs: schema.notes.slice(0, 4) });
    const { openCellSession } = bench.runtime;
    const download = async (as: "csv" | "parquet"): Promise<Buffer> =>
      toBuffer(await openAliasDownload({ item: evidence.get("sales")!, as, openCellSession }));
    expect((await download("csv")).toString()).toBe("name,amount\nMüller,1234.50\nJosé,2.25\n");
    evidence.addData({ name: "again", format: "parquet", bytes: await download("parquet") });
    expect(contentOf(await data.readData({ alias: "again" }))).toMatchObject({ rows });
    const turn = bench.runtime.createTurn({ id: encoding, evidence, artifacts: createMemoryStore() });
    const contract = { operation: "derive_metric", reason: "It was asked for.", inputAliases: ["sales"], expectedArtifacts: [] };
    const code = 'set_result([sales.to_dict("records"), to_frame(inputs.text("sales")).to_dict("records")])';
    const { outcome, text } = await runCodeInterpreter(turn, { code, postProcessingContract: contract });
    await disposeTurnSandbox(turn);
    expect(JSON.parse(outcome!.resultJson!)).toEqual([rows, rows]);
    expect(JSON.parse(text)).toMatchObject({ notes: expect.arrayContaining([`sales: ${schema.notes.join(" ")}`]) as unknown });
  });

  test("that can be read in two ways are refused, and the printed options work as given", async () => {
    const file = write("it's.csv", ambiguous);
    const refusedText = toolErrorOf(await (await bench.open([file])).readData({ alias: "it_s" })).summary;
    expect(refusedText).toContain("'1,234' in 'amount' can mean 1234 or 1.234. Say how to read it: --data '");
    const words = [...refusedText.matchAll(/--data (\S+?)(?= or |\.?$)/g)].map(([, word]) => fromShell(word!));
    expect(words.length).toBe(2);
    const amounts: unknown[] = [];
    for (const given of words) {
      const data = await bench.open([given]);
      amounts.push((contentOf(await data.readData({ alias: "it_s" })) as { rows: { amount: number }[] }).rows.map(({ amount }) => amount));
      expect(contentOf(await data.schema("it_s"))).toMatchObject({
        reader: { decimal: { from: "given" }, delimiter: { from: "inferred" } },
      });
    }
    expect(amounts).toEqual([
      [1.234, 567],
      [1234, 567],
    ]);
  });

  test("take options with --data, where an existing file of that name wins, and refuse wrong ones", async () => {
    write("plain.csv", "a|b\n1|2\n");
    write("plain.csv?delimiter=%7C.csv", "c\n7\n");
    const literal = await bench.open([path.join(bench.folder, "plain.csv?delimiter=%7C.csv")]);
    expect(contentOf(await literal.readData({ alias: literal.evidence.aliases()[0] }))).toMatchObject({ rows: [{ c: 7 }] });
    const given = await bench.open([bench.folder, path.join(bench.folder, "plain.csv?delimiter=none&encoding=windows-1252")]);
    expect(contentOf(await given.readData({ alias: "plain" }))).toMatchObject({ columns: ["a|b"], rows: [{ "a|b": "1|2" }] });
    await expect(bench.open([path.join(bench.folder, "plain.csv?delimiter=x")])).rejects.toMatchObject({ code: "READER_OPTIONS_INVALID" });
    await expect(bench.open([path.join(bench.folder, "plain.csv?colour=red")])).rejects.toMatchObject({ code: "READER_OPTIONS_INVALID" });
  });

  test("given to sluice run are refused with options that work as printed", () => {
    write("sales.csv", ambiguous);
    const run = (input: string): ReturnType<typeof spawnSync> =>
      spawnSync(sluice, ["run", "-", "--json", "--quiet", "--input", input], {
        cwd: bench.folder,
        input: "set_result(float(s.amount[0]))",
        encoding: "utf8",
      });
    const { error } = JSON.parse(String(run("s=sales.csv").stdout)) as { error: { message: string } };
    const [, word] = /--input (s='.*?')/.exec(error.message)!;
    expect(JSON.parse(String(run(fromShell(word!)).stdout))).toMatchObject({ status: "ok", result: 1.234 });
  });

  test("a text column is never compared with a number", async () => {
    write(
      "units.csv",
      `item,units\n${Array.from({ length: 50 }, (_, n) => `i${n},${n % 2 === 0 ? `"${n + 1},000"` : "n.v."}`).join("\n")}\ni99,"1,234,567"\n`,
    );
    const data = await bench.open();
    const refused = async (op: string, value: unknown): Promise<string> =>
      toolErrorOf(await data.readData({ alias: "units", filter: [{ column: "units", op, value }] })).summary;
    for (const [op, value] of [
      ["gt", 4000],
      ["gt", "4,000"],
      ["le", "4000"],
      ["eq", 4000],
      ["ne", 1.5],
      ["in", [1, 2]],
    ] as const)
      expect(await refused(op, value)).toMatch(
        /^The column units of units is text, for example ".*", so it cannot be compared with the number /,
      );
    const filter = [{ column: "units", op: "eq", value: "n.v." }];
    expect(contentOf(await data.readData({ alias: "units", filter, limit: 1 }))).toMatchObject({ matched: 25 });
    expect(contentOf(await data.schema("units"))).toMatchObject({
      notes: ["'units' is text, not numbers, because of 25 of 51 cells, for example 'n.v.'."],
    });
  });

  test("stored inline take options too, and what cannot be decided is not stored", async () => {
    const data = await bench.open();
    expect(toolErrorOf(await data.storeData({ name: "s", csv: ambiguous })).summary).toContain('reader {"decimal": ","}');
    expect(data.evidence.aliases()).toEqual([]);
    expect(contentOf(await data.storeData({ name: "s", csv: ambiguous, reader: { decimal: "," } }))).toMatchObject({ rows: 2 });
    expect(contentOf(await data.readData({ alias: "s" }))).toMatchObject({ rows: [{ amount: 1.234 }, { amount: 567 }] });
  });

  test("uploaded through the API are refused with the address that reads them", async () => {
    await using open = await openTestServer();
    const upload = async (address: string): Promise<{ alias: string; problem?: string | undefined }> => {
      const response = await open.request(address, { method: "POST", body: ambiguous });
      expect(response.status).toBe(201);
      return aliasSchema.parse(await response.json());
    };
    const { problem } = await upload("/api/conversations/dialects/files?name=my%20sales.csv");
    const [, address] = /POST (\S+)/.exec(problem!)!;
    const { alias, problem: none } = await upload(address!);
    expect(none).toBeUndefined();
    const page = await open.call("GET", `/api/conversations/dialects/aliases/${alias}/rows`, undefined, tableRowsSchema);
    expect(page.body.rows).toEqual([
      ["a", 1.234],
      ["b", 567],
    ]);
    const wrong = await open.request("/api/conversations/dialects/files?name=x.csv&delimiter=x", { method: "POST", body: ambiguous });
    expect(wrong.status).toBe(400);
  });
});

async function toBuffer(download: TableDownload): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(download.stream()));
}

/** The word that a shell reads. */
function fromShell(word: string): string {
  return spawnSync("bash", ["-c", `printf %s ${word}`], { encoding: "utf8" }).stdout;
}
