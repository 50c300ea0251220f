import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { cacheDirectory } from "../src/config/environment.ts";
import { openTableDownload } from "../src/data/open-table-download.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import type { Dataset, DatasetStore } from "../src/evidence/dataset/dataset.ts";
import { createDatasetFileStore } from "../src/evidence/dataset/create-dataset-store.ts";
import { createDatasetMemoryStore } from "../src/evidence/dataset/create-dataset-store.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { call, final, readDataset, scriptedModel, testTurn } from "./turn-fixtures.ts";

const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
afterAll(() => runtime.close());

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(os.tmpdir(), "sluice-dataset-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const at = new Date("2026-01-02T03:04:05Z");

function example(): Dataset {
  const evidence = createEvidenceStore({ conversationId: "c", now: () => at });
  evidence.add({ tool: "market__get_rows", arguments: { a: 1 }, output: '[{"id": 12345678901234567890, "x": 1.50}]' });
  evidence.add({ tool: "market__get_nan", output: '[{"x": NaN}]' });
  evidence.add({ tool: "market__get_text", output: "only words" });
  evidence.addData({ name: "blob", format: "bytes", bytes: Uint8Array.from([0, 255, 1]) });
  const data = [{ day: 1, price: 2 }];
  return {
    facts: { turnId: "t", question: "Why?" },
    items: evidence.aliases().map((alias) => evidence.get(alias)!),
    artifacts: [{ kind: "chart", contentHash: "c".repeat(64), title: "Price", data }],
  };
}

async function readAll(store: DatasetStore, hash: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const bytes of (await store.open(hash))!.stream()) pieces.push(bytes);
  return Buffer.concat(pieces).toString();
}

describe.each([
  ["in files", () => createDatasetFileStore({ directory })],
  ["in memory", () => createDatasetMemoryStore()],
])("a dataset %s", (_, open) => {
  test("is one JSON document, named by its hash, with every original output", async () => {
    const store = open();
    const { hash, bytes, datasetId } = await store.put(example());
    const text = await readAll(store, hash);
    expect(createHash("sha256").update(text).digest("hex")).toBe(hash);
    expect(Buffer.byteLength(text)).toBe(bytes);
    expect(datasetId).toBe(`ds_${hash.slice(0, 24)}`);
    expect(text).toContain('"value":[{"id": 12345678901234567890, "x": 1.50}]');
    const document = JSON.parse(text) as Record<string, never> & { outputs: Record<string, unknown>[]; artifacts: unknown[] };
    expect(document).toMatchObject({ schemaVersion: 1, turnId: "t", question: "Why?" });
    expect(document.outputs.map(({ alias, encoding, value }) => [alias, encoding, alias === "get_rows_1" ? null : value])).toEqual([
      ["get_rows_1", "json", null],
      ["get_nan_1", "text", '[{"x": NaN}]'],
      ["get_text_1", "text", "only words"],
      ["blob", "base64", "AP8B"],
    ]);
    const items = example().items;
    expect(document.outputs.map(({ sha256 }) => sha256)).toEqual(items.map(({ sha256 }) => sha256));
    expect(document.outputs[0]).toMatchObject({
      source: "tool",
      tool: "market__get_rows",
      arguments: { a: 1 },
      at: at.toISOString(),
      bytes: 41,
    });
    expect(document.artifacts).toEqual([{ kind: "chart", contentHash: "c".repeat(64), title: "Price", data: [{ day: 1, price: 2 }] }]);
  });

  test("lists its tables, each with the stored bytes", async () => {
    const store = open();
    const { hash } = await store.put(example());
    const reader = (await store.open(hash))!;
    expect(reader.tables).toEqual([
      { name: "get_rows_1", format: "json", path: [], rows: 1 },
      { name: "get_nan_1", format: "json", path: [], rows: 1 },
      { name: "chart_1", format: "json", path: [], rows: 1 },
    ]);
    expect(Buffer.from((await reader.readTable("get_rows_1"))!).toString()).toBe('[{"id": 12345678901234567890, "x": 1.50}]');
    const csvOf = async (table: string): Promise<string> => {
      const file = await openTableDownload({ datasets: store, hash, table, as: "csv", openCellSession: runtime.openCellSession });
      return Buffer.concat(await Array.fromAsync(file!.stream())).toString();
    };
    expect(await csvOf("get_rows_1")).toBe("id,x\n12345678901234567890,1.50\n");
    expect(await csvOf("chart_1")).toBe("day,price\n1,2\n");
    expect(await reader.readTable("nothing")).toBeNull();
    expect(await store.open("0".repeat(64))).toBeNull();
    expect(await store.open("../../etc/passwd")).toBeNull();
  });

  test("has the same hash when it is stored again", async () => {
    const store = open();
    const first = await store.put(example());
    expect(await store.put(example())).toEqual(first);
  });
});

describe("a dataset on disk", () => {
  test("leaves no partial files", async () => {
    const store = createDatasetFileStore({ directory });
    const { hash } = await store.put(example());
    const rows = createHash("sha256").update('[{"day":1,"price":2}]').digest("hex");
    const names = [`${hash}.json`, rows, ...example().items.map(({ sha256 }) => sha256)];
    const files = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    expect(files.map(({ name }) => name).sort()).toEqual(names.sort());
  });

  test("stores an output that two turns share once, and composes identical documents on every read", async () => {
    const store = createDatasetFileStore({ directory });
    const [first, second] = [await store.put(example()), await store.put({ ...example(), facts: { turnId: "t2" } })];
    const files = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    expect(files).toHaveLength(2 + example().items.length + 1);
    for (const { hash } of [first, second, first])
      expect(
        createHash("sha256")
          .update(await readAll(createDatasetFileStore({ directory }), hash))
          .digest("hex"),
      ).toBe(hash);
  });

  test("that cannot be stored names the directory", async () => {
    await writeFile(path.join(directory, "file"), "");
    const store = createDatasetFileStore({ directory: path.join(directory, "file") });
    await expect(store.put(example())).rejects.toMatchObject({ code: "STORAGE_UNAVAILABLE" });
  });
});

describe("Parquet", () => {
  const items = (): Dataset => {
    const evidence = createEvidenceStore();
    evidence.add({
      tool: "get_rows",
      output: {
        data: [
          { day: "2026-01-01", price: 1.5, more: { a: 1 } },
          { day: "2026-01-02", price: null, more: "x" },
        ],
      },
    });
    return { facts: {}, items: evidence.aliases().map((alias) => evidence.get(alias)!), artifacts: [] };
  };

  test("is written in a sandbox on request", async () => {
    const store = createDatasetFileStore({ directory });
    const { hash } = await store.put(items());
    const open = (table: string) =>
      openTableDownload({ datasets: store, hash, table, as: "parquet", openCellSession: runtime.openCellSession });
    const made = Buffer.concat(await Array.fromAsync((await open("get_rows_1"))!.stream()));
    expect(made.subarray(0, 4).toString()).toBe("PAR1");
    expect(Buffer.concat(await Array.fromAsync((await open("get_rows_1"))!.stream())).equals(made)).toBe(true);
    expect(await open("nothing")).toBeNull();
    await using session = await runtime.openCellSession();
    session.bind("t", { format: "parquet", bytes: made });
    const { resultJson } = await session.run({ code: "set_result(t.to_dict('records'))" });
    expect(JSON.parse(resultJson!)).toEqual([
      { day: "2026-01-01", price: 1.5, more: '{"a": 1}' },
      { day: "2026-01-02", price: null, more: "x" },
    ]);
  });
});

describe("the dataset of a turn", () => {
  test("has the plan, the stages with their arguments, the cells with their code, and the artifacts", async () => {
    const spec = { type: "line", xKey: "day", series: [{ key: "price" }], xAxis: { type: "number" } };
    const contract = { operation: "derive_metric", reason: "A mean.", inputAliases: ["get_prices_1"], expectedArtifacts: [] };
    const code = "set_result(len(get_prices_1))";
    const turn = testTurn({
      model: scriptedModel({
        plan: { measures: ["rows"] },
        steps: [
          call("get_prices", { symbol: "A" }),
          call("code_interpreter", { code, postProcessingContract: contract }),
          call("render_chart", { alias: "get_prices_1", spec, title: "Price" }),
          final("300 rows. Chart 1."),
        ],
      }),
    });
    const document = JSON.parse(await readDataset(turn.request, await runTurn(runtime, turn.request))) as Record<string, unknown>;
    expect(Object.keys(document)).toEqual([
      "schemaVersion",
      "turnId",
      "conversationId",
      "tenant",
      "question",
      "plan",
      "stages",
      "outcome",
      "provenance",
      "outputs",
      "artifacts",
    ]);
    expect(document["stages"]).toMatchObject([
      {
        step: 1,
        calls: [
          { tool: "get_prices", server: "local", arguments: { symbol: "A" }, status: "ok", aliases: ["get_prices_1"], artifacts: [] },
        ],
      },
      { step: 2, calls: [{ tool: "code_interpreter", status: "ok", aliases: ["result_1"] }] },
      { step: 3, calls: [{ tool: "render_chart", artifacts: [expect.stringMatching(/^[0-9a-f]{64}$/)] }] },
      { step: 4, calls: [{ tool: "final_response" }] },
    ]);
    expect(document["provenance"]).toEqual({
      snapshot: (await runtime.snapshot()).id,
      model: "mock-provider:mock-model-id",
      cells: [
        {
          step: 2,
          tool: "code_interpreter",
          code,
          inputAliases: ["get_prices_1"],
          reason: "A mean.",
          resultAlias: "result_1",
          artifacts: [],
          replacedIn: null,
        },
      ],
    });
    expect((document["outputs"] as { alias: string; source: string }[]).map(({ alias, source }) => [alias, source])).toEqual([
      ["get_prices_1", "tool"],
      ["result_1", "result"],
    ]);
    expect((document["artifacts"] as { data: unknown[] }[])[0]!.data).toHaveLength(300);
  });
});
