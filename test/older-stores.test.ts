import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createFileStore } from "../src/artifacts/artifact-store.ts";
import type { StoredUpload, UploadStore } from "../src/data/conversation-data.ts";
import { createUploadStore } from "../src/data/create-upload-store.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import type { DatasetStore } from "../src/evidence/dataset/dataset.ts";
import { createDatasetFileStore } from "../src/evidence/dataset/create-dataset-store.ts";
import type { ArtifactReference } from "../src/protocol/artifact-reference.ts";
import type { TurnDocument } from "../src/protocol/http-turns.ts";
import { prune } from "../src/server/http/prune.ts";
import { createTenantStores, type TenantStores } from "../src/server/http/create-tenant-stores.ts";
import type { History } from "../src/history/history.ts";
import { openHistory } from "../src/history/open-history.ts";
import { openTestServer } from "./fixtures/open-test-server.ts";

/** A directory that version 0.1.0 wrote: one conversation of a tenant, and files of `sluice ask`. */
const written = path.join(import.meta.dirname, "fixtures", "store-0.1.0");
const tenant = "acme";
const datasetId = "ds_76c58fc78f82bd5f48e19a24";
const dataset = "76c58fc78f82bd5f48e19a24514ae607a1cb2213f192af1b319df1965e7b7875";
const picture = "92b2fa58028958317e408bd84ecfa70f5ee35b121991dbc232c49d166353708b";
const chart = "a950cf1dce6164670135b2a7b2222e669a2f584da4fdb3194a2943df15cdbbe9";

describe("a directory of version 0.1.0", () => {
  let directory: string;
  let history: History;
  let uploads: UploadStore;
  let stores: TenantStores;
  beforeEach(() => {
    directory = mkdtempSync(path.join(os.tmpdir(), "sluice-older-"));
    cpSync(written, directory, { recursive: true });
    history = openHistory({ file: path.join(directory, "history.sqlite") });
    uploads = createUploadStore({ directory: path.join(directory, "uploads") });
    stores = createTenantStores({ directory, history, uploads })(tenant);
  });
  afterEach(() => {
    history.close();
    rmSync(directory, { recursive: true });
  });

  const text = async (bytes: Uint8Array | null | Promise<Uint8Array | null>): Promise<string> => Buffer.from((await bytes)!).toString();
  const filesLeft = (): string[] =>
    readdirSync(directory, { recursive: true, withFileTypes: true }).flatMap((one) =>
      one.isFile() && !one.name.startsWith("history.") ? [one.name] : [],
    );
  async function expectDataset(datasets: DatasetStore): Promise<void> {
    const reader = (await datasets.open(dataset))!;
    const document = Buffer.concat(await Array.fromAsync(reader.stream()));
    expect([document.length, reader.bytes, reader.tables.map(({ name }) => name)]).toEqual([
      1706,
      1706,
      ["get_rows_1", "get_nan_1", "chart_1"],
    ]);
    expect(JSON.parse(document.toString())).toMatchObject({ turnId: "t1", outputs: [{}, {}, {}, { alias: "blob", value: "AP8B" }] });
    expect(await text(reader.readTable("get_rows_1"))).toBe('[{"id": 12345678901234567890, "x": 1.50}]');
    expect(await text(reader.readTable("get_nan_1"))).toBe('[{"x": NaN}]');
    expect(await text(reader.readTable("chart_1"))).toBe('[{"day":1,"price":2}]');
  }

  test("can be opened: artifacts, the dataset, evidence and uploads have their old names and addresses", async () => {
    expect(await text(stores.artifacts.get(picture, "png"))).toBe("a picture");
    expect(await text(stores.artifacts.get(chart, "json"))).toBe('{"spec":{},"data":[]}');
    expect(history.turns.findDataset(tenant, datasetId)).toEqual({ hash: dataset });
    await expectDataset(stores.datasets);
    const kept = history.evidence.list(tenant, "c1").map(({ alias, sha256 }) => [alias, Buffer.from(stores.evidence.read(sha256)).length]);
    expect(kept).toEqual([
      ["get_rows_1", 41],
      ["get_nan_1", 12],
      ["get_text_1", 10],
      ["blob", 3],
    ]);
    const [upload] = history.uploads.list(tenant, "c1");
    const opened = await uploads.open(JSON.parse(upload!.record) as StoredUpload);
    expect(Buffer.from(opened!.content.read()).toString()).toBe("day,amount\n1,2\n");
    const ask = createFileStore({ directory });
    const loose = "47705594bc1e9c859977e3cc1d082222982429b0b1667f26e94def538c860ee5";
    expect(await text(ask.get(loose, "png"))).toBe("a picture of sluice ask");
    await expectDataset(createDatasetFileStore({ directory: path.join(directory, "datasets") }));
  });

  const datasetAgain = () => {
    const evidence = createEvidenceStore({ conversationId: "c1", tenant, now: () => new Date("2026-01-02T03:04:05.000Z") });
    evidence.add({ tool: "market__get_rows", arguments: { a: 1 }, output: '[{"id": 12345678901234567890, "x": 1.50}]' });
    evidence.add({ tool: "market__get_nan", output: '[{"x": NaN}]' });
    evidence.add({ tool: "market__get_text", output: "only words" });
    evidence.addData({ name: "blob", format: "bytes", bytes: Uint8Array.from([0, 255, 1]) });
    return {
      facts: { turnId: "t1", question: "Why?" },
      items: evidence.aliases().map((alias) => evidence.get(alias)!),
      artifacts: [{ kind: "chart", contentHash: chart, title: "Price", data: [{ day: 1, price: 2 }] }] as const,
    };
  };

  test("keeps the document, hash and address of a dataset that is stored again", async () => {
    const expected = { datasetId, hash: dataset, bytes: 1706, url: `/data/${datasetId}.json` };
    expect(await stores.datasets.put(datasetAgain())).toEqual(expected);
    await expectDataset(stores.datasets);
    const fresh = createDatasetFileStore({ directory: path.join(directory, "fresh") });
    expect(await fresh.put(datasetAgain())).toMatchObject({ datasetId, hash: dataset, bytes: 1706 });
    await expectDataset(fresh);
  });

  test("gets a manifest in place of a damaged document", async () => {
    const isDocument = (file: string): boolean => file.startsWith("tenants") && file.endsWith(`${dataset}.json`);
    const document = readdirSync(directory, { recursive: true, encoding: "utf8" }).find(isDocument)!;
    writeFileSync(path.join(directory, document), "cut short");
    await stores.datasets.put(datasetAgain());
    await expectDataset(stores.datasets);
  });

  test("is served with the conversation, its artifacts and its dataset at their addresses", { timeout: 120_000 }, async () => {
    const tokens = [{ tenant, sha256: createHash("sha256").update("token-of-acme").digest("hex") }];
    const served = path.join(directory, "served");
    cpSync(written, served, { recursive: true });
    writeOlderArtifact(path.join(served, "history.sqlite"));
    const configuration = { auth: { tokens }, artifacts: { directory: served }, server: { retention: { days: 36_500 } } };
    await using open = await openTestServer({ token: "token-of-acme", configuration });
    const get = async (address: string): Promise<string> => {
      const response = await open.request(address);
      expect(response.status, address).toBe(200);
      return await response.text();
    };
    expect(await get(`/artifacts/${picture}.png`)).toBe("a picture");
    expect(await get(`/artifacts/${chart}.json`)).toBe('{"spec":{},"data":[]}');
    expect(
      createHash("sha256")
        .update(await get(`/data/${datasetId}.json`))
        .digest("hex"),
    ).toBe(dataset);
    const { cells, result } = JSON.parse(await get("/api/turns/t1")) as TurnDocument;
    const [{ contentHash, summary, figureData }] = result!.artifacts as [ArtifactReference];
    expect([cells, contentHash, summary]).toEqual([[], picture, { series: 1, points: 2 }]);
    const figure = await get(new URL(figureData!.url).pathname);
    expect([figure.length, JSON.parse(figure)]).toMatchObject([
      figureData!.bytes,
      { schemaVersion: 2, axes: [{ series: [{ x: [0, 1] }] }] },
    ]);
    const conversation = JSON.parse(await get("/api/conversations/c1")) as { title: string; aliases: { alias: string }[] };
    expect([conversation.title, conversation.aliases.map(({ alias }) => alias)]).toEqual([
      "Prices",
      ["get_rows_1", "get_nan_1", "get_text_1", "blob", "sales"],
    ]);
  });

  test("loses all files of a deleted conversation and all expired files", async () => {
    history.references.deleteConversation(tenant, "c1", (files) => stores.remove(files));
    expect(filesLeft().sort()).toEqual([
      "47705594bc1e9c859977e3cc1d082222982429b0b1667f26e94def538c860ee5.png",
      `${dataset}.index.json`,
      `${dataset}.json`,
    ]);
    for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" }))
      if (!name.startsWith("history")) utimesSync(path.join(directory, name), 0, 0);
    const storesOf = createTenantStores({ directory, history, uploads });
    const pruned = await prune({ directory, history, storesOf, retention: { days: 30, maxBytes: 1_000_000 } });
    expect([pruned, filesLeft()]).toEqual([[{ tenant: null, expired: 3, overQuota: 0, orphans: 0, bytesBefore: 2404, bytesAfter: 0 }], []]);
  });
});

/** Adds a picture with its data to the result of the turn, as version 0.1.0 wrote it. */
function writeOlderArtifact(file: string): void {
  const axes = { xScale: "category", yScale: "linear", series: [{ type: "line", x: ["a", "b"], y: [1, 2] }], unread: [] };
  const place = { schemaVersion: 1, kind: "image", url: `/artifacts/${picture}.png`, contentHash: picture, bytes: 9 };
  const artifacts = [{ ...place, alt: "A line that rises", width: 5, height: 4, figure: { axes: [axes] } }];
  const parts = { artifacts, gaps: [], confidence: { level: "high", reason: "Good." }, trace: [] };
  const grounding = { toolCallAttemptCount: 0, toolCallSuccessCount: 0, toolCallFailureCount: 0, failures: [] };
  const usage = { steps: 1, inputTokens: 0, outputTokens: 0, wallMs: 1, sandboxMs: 0 };
  using database = new DatabaseSync(file);
  const update = database.prepare("UPDATE turns SET result = json_patch(result, ?) WHERE id = 't1'");
  update.run(JSON.stringify({ ...parts, grounding, usage }));
}

describe("the bodies of a dataset", () => {
  test("are kept while a manifest refers to them, and removed with the last one", async () => {
    const directory = mkdtempSync(path.join(os.tmpdir(), "sluice-bodies-"));
    using history = openHistory({ file: path.join(directory, "history.sqlite") });
    const uploads = createUploadStore({ directory: path.join(directory, "uploads") });
    const stores = createTenantStores({ directory, history, uploads })(tenant);
    const at = new Date().toISOString();
    const evidence = createEvidenceStore({ conversationId: "c", tenant });
    const item = evidence.add({ tool: "get_rows", output: '[{"x": 1}]' });
    const { sha256: given } = await uploads.put({ tenant, fileName: "x.csv", content: new Blob(["a\n1\n"]).stream() });
    const upload = evidence.addData({ name: "x", format: "csv", bytes: Buffer.from("a\n1\n") });
    for (const turnId of ["t1", "t2"]) {
      history.conversations.ensure({ tenant, id: `c-${turnId}`, title: "", at });
      history.turns.begin({ tenant, turnId, conversationId: `c-${turnId}`, question: "?", at });
      const kept = await stores.datasetsFor(turnId).put({ facts: { turnId }, items: [item, upload], artifacts: [] });
      const result = { conversationId: `c-${turnId}`, outcome: { stopReason: "complete_answer" }, answer: "", dataset: kept };
      history.turns.end({ tenant, turnId, at, result: result as never });
    }
    const place = { tenant, conversationId: "c-t1" };
    history.evidence.add(place, { alias: "a", turnId: "t1", record: "{}", sha256: item.sha256, bytes: 10 });
    history.uploads.add({ ...place, at }, { alias: "x", record: "{}", sha256: given, bytes: 4 }, () => true);
    const held = (): boolean[] => [stores.evidence.has(item.sha256), stores.evidence.has(given), uploads.blobsOf(tenant).has(given)];
    expect([upload.sha256, held()]).toEqual([given, [true, false, true]]);
    history.references.deleteConversation(tenant, "c-t1", (files) => stores.remove(files));
    expect(held()).toEqual([true, false, true]);
    expect(Object.values(stores.orphans(-1)).flat()).toEqual([]);
    history.references.deleteTurn(tenant, "t2", (files) => stores.remove(files));
    expect(held()).toEqual([false, false, false]);
    expect(Object.values(stores.orphans(-1)).flat()).toEqual([]);
    rmSync(directory, { recursive: true });
  });
});
